"""Replaces spans, dates and versions in paths by placeholders."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence

from pipeline.scaffold.find_examples import ExampleFiles
from sluice.storage.file_pattern import FilePattern

_DATE = re.compile(r"(?<!\d)(\d{4})(?P<sep>[-_]?)(\d{2})(?P=sep)(\d{2})(?!\d)")
_SPAN = re.compile(r"(?i)(?P<before>span[-_=]?)(?P<number>\d+)")
_VERSION = re.compile(r"(?i)(?P<before>v|version[-_=]?)(?P<number>\d+)")


Rewrite = Callable[[str], str]


def add_placeholders(examples: ExampleFiles) -> dict[str, str]:
    """Returns each path with ``{SPAN}``, ``{YYYY}{MM}{DD}`` or ``{VERSION}`` in it.

    Placeholders of the requested pattern are used as they are. Without them, the first
    folder or file name that is a date or a span in all paths gets them.
    """
    requested = FilePattern.parse(examples.pattern) if examples.pattern else None
    if requested and requested.placeholders:
        return {path: _as_in(requested, path) for path in examples.files}
    paths = [path.split("/") for path in examples.files]
    if len({len(parts) for parts in paths}) == 1:
        for at, names in enumerate(zip(*paths, strict=True)):
            if rewrite := _span_rewrite(names):
                _rewrite_all(paths, at, rewrite)
                _rewrite_versions(paths, at + 1)
                break
    return dict(zip(examples.files, map("/".join, paths), strict=True))


def _rewrite_all(paths: list[list[str]], at: int, rewrite: Rewrite) -> None:
    for parts in paths:
        parts[at] = rewrite(parts[at])


def _rewrite_versions(paths: list[list[str]], at: int) -> None:
    """Replaces the folders below a span, where all of them are versions."""
    if at >= len(paths[0]) - 1:
        return
    found = [_VERSION.fullmatch(parts[at]) for parts in paths]
    if all(found):
        _rewrite_all(paths, at, _numbered("VERSION", _VERSION, found))


def _span_rewrite(names: Sequence[str]) -> Rewrite | None:
    """Returns what replaces the date or the span in names; None without one in all."""
    if all(_is_date(_DATE.search(name)) for name in names):
        return lambda name: _DATE.sub(_date_placeholders, name, count=1)
    found = [_SPAN.search(name) for name in names]
    return _numbered("SPAN", _SPAN, found) if all(found) else None


def _date_placeholders(match: re.Match[str]) -> str:
    return match["sep"].join(("{YYYY}", "{MM}", "{DD}"))


def _numbered(
    name: str, pattern: re.Pattern[str], found: Sequence[re.Match[str] | None]
) -> Rewrite:
    """Returns what replaces a number by its placeholder, with the width of ``007``."""
    numbers = [match["number"] for match in found if match]
    widths = {len(number) for number in numbers}
    padded = any(len(n) > 1 and n.startswith("0") for n in numbers)
    width = f":{widths.pop()}" if len(widths) == 1 and padded else ""

    def replace(match: re.Match[str]) -> str:
        return f"{match['before']}{{{name}{width}}}"

    return lambda text: pattern.sub(replace, text, count=1)


def _is_date(match: re.Match[str] | None) -> bool:
    if match is None:
        return False
    try:
        day = datetime.date(int(match[1]), int(match[3]), int(match[4]))
    except ValueError:
        return False
    return 1970 <= day.year < 2100


def _as_in(requested: FilePattern, path: str) -> str:
    """Returns a path with the placeholders of a pattern; as it is without a match."""
    if not requested.takes(path):
        return path
    names = zip(requested.segments, path.split("/"), strict=True)
    return "/".join(segment.spell(name) for segment, name in names)
