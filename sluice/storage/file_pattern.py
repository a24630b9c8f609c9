"""Parses file patterns: wildcards, spans and shard names.

``{SPAN}`` or ``{YYYY}``, ``{MM}`` and ``{DD}``, and ``{VERSION}``; ``{SPAN:2}`` and
``{VERSION:2}`` take that many digits. ``*``, ``?`` and ``[...]`` never match a ``/``.

Unlike in TFX a placeholder matches digits only, so that a directory such as
``span-backup`` is no error. A wildcard does not match names that begin with ``.`` or
``_``, nor ``manifest.json``: these are unfinished files, markers and lists of files.
Combinations of placeholders are not checked here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sluice.errors import ConfigError

_PLACEHOLDER = re.compile(r"\{([A-Z]+)(?::([1-9][0-9]*))?\}", re.ASCII)
_ANY_DIGITS = "1,"
# Where one number ends and the next begins is not known in what matches.
_AMBIGUOUS = re.compile(
    r"(?:\{(?:SPAN|VERSION)\}[?0-9]*|\*)\{(?:SPAN|VERSION)\}", re.ASCII
)
_DATE_DIGITS = {"YYYY": 4, "MM": 2, "DD": 2}
_TOKEN = re.compile(r"\{[^{}/]*\}|\[!?\]?[^\]]*\]|[*?]|.", re.DOTALL)
_NO_MANIFEST = r"(?!manifest\.json\Z)"
_NOT_HIDDEN = r"(?![._])"


class PatternError(ConfigError):
    """A pattern, or a part of one, is invalid."""

    def __init__(self, part: str, expected: str) -> None:
        super().__init__(f"the pattern {part!r} is invalid", expected=expected)


@dataclass(frozen=True)
class Segment:
    """Pattern of one name of a path.

    Attributes:
      text: as written.
      regex: None for a literal name.
    """

    text: str
    regex: re.Pattern[str] | None

    @property
    def has_placeholder(self) -> bool:
        """Whether the name contains part of a span or its version."""
        return self.regex is not None and bool(self.regex.groups)

    def match(self, name: str) -> dict[str, str] | None:
        """Returns the placeholders' digits by name; None if the name does not match."""
        if self.regex is None:
            return {} if name == self.text else None
        match = self.regex.fullmatch(name)
        return match and match.groupdict()

    def spell(self, name: str) -> str:
        """Returns a name that matches with the placeholders in place of the digits."""
        match = self.regex.fullmatch(name) if self.regex is not None else None
        if match is None:
            return name
        placeholders = [match[0] for match in _PLACEHOLDER.finditer(self.text)]
        # From the last, as those before it stay where they are.
        for group in range(len(placeholders), 0, -1):
            start, end = match.span(group)
            name = name[:start] + placeholders[group - 1] + name[end:]
        return name


@dataclass(frozen=True)
class FilePattern:
    """A parsed file pattern.

    Attributes:
      text: as written.
      segments: pattern of each name of the path, relative to the base directory.
    """

    text: str
    segments: tuple[Segment, ...]

    @classmethod
    def parse(cls, text: str) -> FilePattern:
        """Reads a pattern.

        Raises:
          PatternError: it is not a relative path of files, or a placeholder or a set of
            characters is invalid.
        """
        names = [name for name in text.split("/") if name not in ("", ".")]
        if text.startswith("/") or "://" in text or text.endswith("/") or not names:
            raise PatternError(text, "a path of files, relative to data.dir")
        return cls(text, tuple(Segment(name, _regex(name)) for name in names))

    @property
    def placeholders(self) -> tuple[str, ...]:
        """Their names, in their order."""
        return tuple(
            group
            for segment in self.segments
            if segment.regex is not None
            for group in segment.regex.groupindex
        )

    def takes(self, path: str) -> bool:
        """Whether a path, relative to the base directory, matches."""
        names = path.split("/")
        return len(names) == len(self.segments) and all(
            segment.match(name) is not None
            for segment, name in zip(self.segments, names, strict=True)
        )


def _regex(name: str) -> re.Pattern[str] | None:
    """Returns the regex of one name of a pattern; None for a literal name."""
    if "**" in name:
        raise PatternError(name, "* for the names in one folder")
    if part := _AMBIGUOUS.search(name):
        expected = "the number of digits, as in {SPAN:2}, or with other text between"
        raise PatternError(part[0], expected)
    parts = [_part(token) for token in _TOKEN.findall(name)]
    literal = "".join(re.escape(token) for token in name)
    if "".join(parts) == literal:
        return None
    guard = _NO_MANIFEST + (_NOT_HIDDEN if name[0] in "*?[" else "")
    try:
        return re.compile(guard + "".join(parts), re.ASCII | re.DOTALL)
    except re.error as error:
        if "redefinition" in str(error):
            raise PatternError(name, "each placeholder once") from error
        raise PatternError(name, "a set of characters such as [0-9]") from error


def _part(token: str) -> str:
    if token == "*":
        return "[^/]*"
    if token == "?":
        return "[^/]"
    if token[0] == "[" and len(token) > 2:
        inner = token[1:-1].replace("\\", r"\\").replace("[", r"\[")
        return f"[^{inner[1:]}]" if inner[0] == "!" else f"[{inner}]"
    if token[0] in "{}":
        return _placeholder(token)
    return re.escape(token)


def _placeholder(token: str) -> str:
    match = _PLACEHOLDER.fullmatch(token)
    name, digits = (match[1], match[2]) if match else ("", None)
    if name in _DATE_DIGITS and digits is None:
        return f"(?P<{name}>[0-9]{{{_DATE_DIGITS[name]}}})"
    if name in ("SPAN", "VERSION"):
        return f"(?P<{name}>[0-9]{{{digits or _ANY_DIGITS}}})"
    expected = "{SPAN}, {SPAN:2}, {YYYY}, {MM}, {DD}, {VERSION} or {VERSION:2}"
    raise PatternError(token, expected)
