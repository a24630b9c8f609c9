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


def placeholder_writer(examples: ExampleFiles) -> Callable[[str], str]:
    """Returns what writes ``{SPAN}`` and its like into a path of these files.

    Where the pattern that was asked for has placeholders, they are those. Else a folder
    or a name is looked for that is a date, or a span, in the paths of all files.
    """
    asked = FilePattern.parse(examples.pattern) if examples.pattern else None
    if asked and asked.placeholders:
        return lambda path: _spelt_as(asked, path)
    split = [path.split("/") for path in examples.files]
    if len({len(parts) for parts in split}) > 1:
        return lambda path: path
    for at, column in enumerate(zip(*split, strict=True)):
        write = _span_writer(column)
        if write:
            following = [parts[at + 1] for parts in split if len(parts) > at + 2]
            version = _version_writer(following)
            return lambda path: _spell(path, at, write, version)
    return lambda path: path


def _spell(
    path: str,
    at: int,
    write: Callable[[str], str],
    version: Callable[[str], str] | None,
) -> str:
    parts = path.split("/")
    if at < len(parts):
        parts[at] = write(parts[at])
    if version and at + 1 < len(parts) - 1:
        parts[at + 1] = version(parts[at + 1])
    return "/".join(parts)


def _span_writer(names: Sequence[str]) -> Callable[[str], str] | None:
    """Returns what writes the placeholders of a date or a span into one name."""
    if all(_is_date(_DATE.search(name)) for name in names):
        return lambda name: _DATE.sub(_date_placeholders, name, count=1)
    found = [_SPAN.search(name) for name in names]
    if all(found):
        placeholder = _numbered("SPAN", [m["number"] for m in found if m])
        return lambda name: _SPAN.sub(
            lambda match: match["before"] + placeholder, name, count=1
        )
    return None


def _version_writer(names: Sequence[str]) -> Callable[[str], str] | None:
    found = [_VERSION.fullmatch(name) for name in names]
    if not found or not all(found):
        return None
    placeholder = _numbered("VERSION", [m["number"] for m in found if m])
    return lambda name: _VERSION.sub(
        lambda match: match["before"] + placeholder, name, count=1
    )


def _date_placeholders(match: re.Match[str]) -> str:
    return match["sep"].join(("{YYYY}", "{MM}", "{DD}"))


def _numbered(name: str, numbers: Sequence[str]) -> str:
    """Returns the placeholder; with its width where the numbers begin with zeros."""
    widths = {len(number) for number in numbers}
    if len(widths) == 1 and any(len(n) > 1 and n.startswith("0") for n in numbers):
        return f"{{{name}:{widths.pop()}}}"
    return f"{{{name}}}"


def _is_date(match: re.Match[str] | None) -> bool:
    if match is None:
        return False
    try:
        day = datetime.date(int(match[1]), int(match[3]), int(match[4]))
    except ValueError:
        return False
    return 1970 <= day.year < 2100


def _spelt_as(asked: FilePattern, path: str) -> str:
    """Returns a path with the placeholders where the pattern that was given has them.

    A path that it does not match stays as it is.
    """
    if not asked.takes(path):
        return path
    names = zip(asked.segments, path.split("/"), strict=True)
    return "/".join(segment.spell(name) for segment, name in names)
