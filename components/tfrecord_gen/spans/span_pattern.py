"""File patterns with ``{SPAN}``, date and ``{VERSION}`` placeholders.

The placeholders are those of TFX's ExampleGen; ``sluice.storage.file_pattern`` defines
what each matches.
"""

from __future__ import annotations

from datetime import date

from sluice.errors import ConfigError
from sluice.storage.file_pattern import FilePattern, PatternError

_EPOCH = date(1970, 1, 1)
_DATE = ("YYYY", "MM", "DD")


class SpanPattern(FilePattern):
    """A file pattern with a valid combination of placeholders."""

    @classmethod
    def parse(cls, text: str) -> SpanPattern:
        """Reads a pattern.

        Raises:
          ConfigError: a placeholder is unknown, repeated, or lacks others that it
            needs; or the pattern names no file.
        """
        try:
            found = super().parse(text)
        except PatternError as error:
            raise _wrong(text, error.expected, error.actual) from error
        _check_together(text, found.placeholders)
        return cls(found.text, found.segments)

    @property
    def location_length(self) -> int:
        """Number of leading segments that contain all placeholders.

        Without placeholders, the number of leading literal directories.
        """
        marked = [segment.has_placeholder for segment in self.segments]
        if any(marked):
            return len(marked) - marked[::-1].index(True)
        literal = [segment.regex is None for segment in self.segments[:-1]]
        return [*literal, False].index(False)


def span_number(digits: dict[str, str]) -> int:
    """Returns a span's number: as written, or the days from 1970-01-01 to its date.

    Args:
      digits: by placeholder.

    Raises:
      ValueError: the date is not in the calendar.
    """
    if "SPAN" in digits:
        return int(digits["SPAN"])
    day = date(*(int(digits[name]) for name in _DATE))
    return (day - _EPOCH).days


def span_date(number: int) -> date:
    """Returns the day of a span that is given as a date."""
    return date.fromordinal(_EPOCH.toordinal() + number)


def _check_together(text: str, placeholders: tuple[str, ...]) -> None:
    names = set(placeholders)
    if len(names) != len(placeholders):
        raise _wrong(text, "each placeholder once")
    dates = names & set(_DATE)
    if dates and len(dates) != len(_DATE):
        raise _wrong(text, "all of {YYYY}, {MM} and {DD}")
    if dates and "SPAN" in names:
        raise _wrong(text, "either {SPAN}, or {YYYY}, {MM} and {DD}")
    if "VERSION" in names and not dates and "SPAN" not in names:
        raise _wrong(text, "{SPAN}, or {YYYY}, {MM} and {DD}, together with {VERSION}")


def _wrong(pattern: str, expected: str, actual: str | None = None) -> ConfigError:
    return ConfigError(
        f"the pattern {pattern!r} is invalid",
        expected=expected,
        actual=actual,
        hint="correct the pattern in the config's data section",
    )
