"""File patterns with the placeholders that TFX's ExampleGen has.

``{SPAN}`` or ``{YYYY}``, ``{MM}`` and ``{DD}``, and ``{VERSION}``; ``{SPAN:2}`` and
``{VERSION:2}`` take that many digits. ``*``, ``?`` and ``[...]`` never match a ``/``.

Unlike in TFX a placeholder takes digits only, so that a directory such as
``span-backup`` is no error. A wildcard takes no name that begins with ``.`` or ``_``
and no ``manifest.json``: these are unfinished files, markers and lists of files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from sluice.errors import ConfigError

_EPOCH = date(1970, 1, 1)
_PLACEHOLDER = re.compile(r"\{([A-Z]+)(?::([1-9][0-9]*))?\}", re.ASCII)
_ANY_DIGITS = "1,18"  # ML Metadata has 64-bit integers.
_DATE_DIGITS = {"YYYY": 4, "MM": 2, "DD": 2}
_TOKEN = re.compile(r"\{[^{}/]*\}|\[!?\]?[^\]]*\]|[*?]|.", re.DOTALL)
_NO_MANIFEST = r"(?!manifest\.json\Z)"
_NOT_HIDDEN = r"(?![._])"


@dataclass(frozen=True)
class Segment:
    """What one name of a path must be.

    Attributes:
      text: as written.
      regex: None for a name that is written out.
    """

    text: str
    regex: re.Pattern[str] | None

    @property
    def has_placeholder(self) -> bool:
        """Whether part of a span, or its version, is taken from the name."""
        return self.regex is not None and bool(self.regex.groups)

    def match(self, name: str) -> dict[str, str] | None:
        """Returns the placeholders' digits by name; None if the name does not match."""
        if self.regex is None:
            return {} if name == self.text else None
        found = self.regex.fullmatch(name)
        return found and found.groupdict()


@dataclass(frozen=True)
class SpanPattern:
    """A file pattern, read.

    Attributes:
      text: as written.
      segments: what each name of the path must be, relative to the base directory.
      placeholders: their names, in their order.
    """

    text: str
    segments: tuple[Segment, ...]
    placeholders: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> SpanPattern:
        """Reads a pattern.

        Raises:
          ConfigError: a placeholder is unknown, there twice, or not there with those
            that it needs; or the pattern names no file.
        """
        names = [name for name in text.split("/") if name not in ("", ".")]
        if text.startswith("/") or "://" in text or text.endswith("/") or not names:
            raise _wrong(text, "a path of files, relative to the data's directory")
        segments = tuple(Segment(name, _regex(name, text)) for name in names)
        placeholders = tuple(
            group
            for segment in segments
            if segment.regex is not None
            for group in segment.regex.groupindex
        )
        _check_together(text, placeholders)
        return cls(text, segments, placeholders)

    @property
    def place_length(self) -> int:
        """How many segments, from the first, say which span and version a file has.

        Without placeholders: how many are written out, without the last one.
        """
        marked = [segment.has_placeholder for segment in self.segments]
        if any(marked):
            return len(marked) - marked[::-1].index(True)
        literal = [segment.regex is None for segment in self.segments[:-1]]
        return [*literal, False].index(False)


def span_number(digits: dict[str, str]) -> int:
    """Returns a span's number: as written, or the days from 1970-01-01 to its date.

    Args:
      digits: of a match of all of a pattern's segments.

    Raises:
      ValueError: the date is not in the calendar.
    """
    if "SPAN" in digits:
        return int(digits["SPAN"])
    day = date(*(int(digits[name]) for name in _DATE_DIGITS))
    return (day - _EPOCH).days


def span_date(number: int) -> date:
    """Returns the day of a span that is given as a date."""
    return date.fromordinal(_EPOCH.toordinal() + number)


def _regex(name: str, pattern: str) -> re.Pattern[str] | None:
    """Translates one name of a pattern; None where it is written out."""
    if "**" in name:
        raise _wrong(pattern, "* for the names in one folder", "**")
    parts = [_part(token, pattern) for token in _TOKEN.findall(name)]
    literal = "".join(re.escape(token) for token in name)
    if "".join(parts) == literal:
        return None
    guard = _NO_MANIFEST + (_NOT_HIDDEN if name[0] in "*?[" else "")
    try:
        return re.compile(guard + "".join(parts), re.ASCII | re.DOTALL)
    except re.error as error:
        if "redefinition" in str(error):
            raise _wrong(pattern, "each placeholder once") from error
        raise _wrong(pattern, "a set of characters such as [0-9]") from error


def _part(token: str, pattern: str) -> str:
    if token == "*":
        return "[^/]*"
    if token == "?":
        return "[^/]"
    if token[0] == "[" and len(token) > 2:
        inner = token[1:-1].replace("\\", r"\\").replace("[", r"\[")
        return f"[^{inner[1:]}]" if inner[0] == "!" else f"[{inner}]"
    if token[0] in "{}":
        return _placeholder(token, pattern)
    return re.escape(token)


def _placeholder(token: str, pattern: str) -> str:
    found = _PLACEHOLDER.fullmatch(token)
    name, digits = (found[1], found[2]) if found else ("", None)
    if name in _DATE_DIGITS and digits is None:
        return f"(?P<{name}>[0-9]{{{_DATE_DIGITS[name]}}})"
    if name in ("SPAN", "VERSION"):
        return f"(?P<{name}>[0-9]{{{digits or _ANY_DIGITS}}})"
    raise _wrong(
        pattern,
        "{SPAN}, {SPAN:2}, {YYYY}, {MM}, {DD}, {VERSION} or {VERSION:2}",
        token,
    )


def _check_together(text: str, placeholders: tuple[str, ...]) -> None:
    names = set(placeholders)
    if len(names) != len(placeholders):
        raise _wrong(text, "each placeholder once")
    dates = names & set(_DATE_DIGITS)
    if dates and len(dates) != len(_DATE_DIGITS):
        raise _wrong(text, "all of {YYYY}, {MM} and {DD}")
    if dates and "SPAN" in names:
        raise _wrong(text, "either {SPAN}, or {YYYY}, {MM} and {DD}")
    if "VERSION" in names and not dates and "SPAN" not in names:
        raise _wrong(text, "{SPAN}, or {YYYY}, {MM} and {DD}, together with {VERSION}")


def _wrong(pattern: str, expected: str, actual: str | None = None) -> ConfigError:
    return ConfigError(
        f"the pattern {pattern!r} cannot be used",
        expected=expected,
        actual=actual,
        hint="correct the pattern in the config's data section",
    )
