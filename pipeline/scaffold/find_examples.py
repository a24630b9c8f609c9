"""Finds the TFRecord files that match a pattern, and the directory that they are in.

The pattern is a file pattern, which may have ``{SPAN}`` and other placeholders, or a
directory, of which all files match. Files that are not TFRecords by their name, such as
``.json``, are left out.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from sluice.errors import UsageError, did_you_mean
from sluice.storage.file_pattern import FilePattern
from sluice.storage.storage import is_remote

_SPECIAL = re.compile(r"[*?\[{]")
_OTHER_SUFFIXES = tuple(
    ".json .jsonl .txt .md .csv .tsv .yaml .yml .pbtxt .pb .py .html .log .parquet "
    ".zip .tar .png .jpg .jpeg .npy .crc .idx .index".split()
)


@dataclass(frozen=True)
class ExampleFiles:
    """Files below one directory.

    Attributes:
      directory: absolute.
      pattern: the requested pattern below it; None if a directory was requested.
      files: the paths below it, in order; at least one.
      others: the other files below it, which no proposed pattern may match.
    """

    directory: Path
    pattern: str | None
    files: tuple[str, ...]
    others: tuple[str, ...]


def find_examples(pattern: str, cwd: Path) -> ExampleFiles:
    """Returns the files that a pattern matches.

    Args:
      pattern: of files, or a directory.
      cwd: where relative paths begin, absolute.

    Raises:
      UsageError: it is remote, is not a valid pattern, or matches no file that could
        be a TFRecord.
    """
    if is_remote(pattern):
        raise UsageError(
            "sluice init reads local files only: copy two or three files here, and "
            "set data.dir of the proposed config to the remote directory",
            where=pattern,
        )
    base, below = _split(cwd, pattern)
    everything = _walk(base)
    if below == ".":
        asked, matching = None, everything
    else:
        asked, parsed = below, FilePattern.parse(below)
        matching = [path for path in everything if parsed.takes(path)]
    files = [path for path in matching if _may_hold_records(path)]
    if not files:
        raise _nothing(pattern, base, below, matching)
    wanted = set(files)
    others = tuple(path for path in everything if path not in wanted)
    return ExampleFiles(base, asked, tuple(files), others)


def _split(base: Path, pattern: str) -> tuple[Path, str]:
    """Splits a pattern before its first part that is not a plain directory."""
    whole = base / pattern
    if whole.is_dir():
        return Path(os.path.abspath(whole)), "."
    parts = whole.parts
    special = (at for at, part in enumerate(parts) if _SPECIAL.search(part))
    at = min(next(special, len(parts)), len(parts) - 1)
    return Path(os.path.abspath(Path(*parts[:at]))), "/".join(parts[at:])


def _walk(base: Path) -> list[str]:
    """Returns the paths of the files below a directory that wildcards match, sorted."""
    found = []
    for folder, folders, names in os.walk(base, followlinks=True):
        folders[:] = [name for name in folders if name[0] not in "._"]
        below = Path(folder).relative_to(base)
        found += [(below / name).as_posix() for name in names if name[0] != "."]
    return sorted(found)


def _may_hold_records(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    return not name.startswith("_") and not name.endswith(_OTHER_SUFFIXES)


def _nothing(pattern: str, base: Path, below: str, matching: list[str]) -> UsageError:
    """Returns the error for a pattern without files, with what is there instead."""
    while not base.is_dir():
        base, below = base.parent, base.name
    if matching:
        return UsageError(
            f"the pattern {pattern!r} matches only files that are no TFRecords by name",
            where=base,
            examples=matching,
        )
    names = sorted(f"{x.name}/" if x.is_dir() else x.name for x in base.iterdir())
    return UsageError(
        f"the pattern {pattern!r} matches no file",
        where=base,
        examples=names,
        hint=did_you_mean(below.partition("/")[0], names),
    )
