"""File patterns with ``{SPAN}``, date and ``{VERSION}`` placeholders.

The placeholders are those of TFX's ExampleGen; ``sluice.storage.file_pattern`` defines
what each matches.
"""

from __future__ import annotations

from datetime import date, timedelta

from sluice.errors import ConfigError
from sluice.storage.file_pattern import FilePattern, PatternError, Segment

_EPOCH = date(1970, 1, 1)
_DATE = ("YYYY", "MM", "DD")
_TOGETHER = "{SPAN}, or {YYYY}, {MM} and {DD}; each once; {VERSION} only with them"


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
            raise ConfigError(
                f"the pattern {text!r} is invalid",
                expected=error.expected,
                actual=error.actual,
            ) from error
        names = sorted(name for name in found.placeholders if name != "VERSION")
        if names not in (["SPAN"], sorted(_DATE), []) or (
            not names and found.placeholders
        ):
            raise ConfigError(f"the pattern {text!r} is invalid", expected=_TOGETHER)
        return cls(found.text, found.segments)

    @property
    def parts(self) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
        """The leading segments that contain all placeholders, and the others.

        Without placeholders, the leading literal directories and the others.
        """
        marked = [segment.has_placeholder for segment in self.segments]
        literal = [segment.regex is None for segment in self.segments[:-1]]
        at = [*literal, False].index(False)
        if any(marked):
            at = len(marked) - marked[::-1].index(True)
        return self.segments[:at], self.segments[at:]

    def digits(self, path: str) -> dict[str, str]:
        """Returns the digits of the placeholders in the beginning of a path."""
        found: dict[str, str] = {}
        for segment, name in zip(self.segments, path.split("/"), strict=False):
            found |= segment.match(name) or {}
        return found


def span_number(digits: dict[str, str]) -> int:
    """Returns a span's number: as written, or the days from 1970-01-01 to its date.

    Raises:
      ValueError: the date is not in the calendar.
    """
    if "SPAN" in digits:
        return int(digits["SPAN"])
    return (date(*(int(digits[name]) for name in _DATE)) - _EPOCH).days


def span_date(number: int) -> date:
    """Returns the day of a span that is given as a date."""
    return _EPOCH + timedelta(days=number)
