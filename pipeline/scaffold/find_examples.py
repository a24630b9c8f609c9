"""Finds the TFRecord files that match a pattern, and the directory that they are in.

The pattern is a file pattern, which may have ``{SPAN}`` and other placeholders, or a
directory, of which all files match. Files that are not TFRecords by their name, such as
``.json``, are left out.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from sluice.errors import UsageError
from sluice.storage.file_pattern import FilePattern, PatternError
from sluice.storage.storage import is_remote

_SPECIAL = re.compile(r"[*?\[{]")
_TRIED = 20
_OTHER_SUFFIXES = (
    ".json .jsonl .txt .md .csv .tsv .yaml .yml .pbtxt .pb .py .html .log .parquet "
    ".zip .tar .png .jpg .jpeg .npy .crc .idx .index"
).split()


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

    def path(self, file: str) -> Path:
        """Returns the absolute path of one of the files."""
        return self.directory / file


def find_examples(pattern: str, directory: str | None, cwd: Path) -> ExampleFiles:
    """Returns the files that a pattern matches.

    Args:
      pattern: of files, or a directory; below ``directory``, or else below ``cwd``.
      directory: ``data.dir`` of the config to be; None takes the part of the pattern
        before its first wildcard.
      cwd: where relative paths begin, absolute.

    Raises:
      UsageError: it is remote, is not a valid pattern, or matches no file that could
        be a TFRecord.
    """
    for given in (pattern, directory or ""):
        if is_remote(given):
            raise UsageError(
                "sluice init reads local files only",
                where=given,
                expected="a local path",
                hint="copy two or three files here, run sluice init on them, then "
                "set data.dir of the config to the remote directory",
            )
    found, matching = _find(pattern, directory, cwd)
    if not found.files:
        raise _nothing(pattern, directory, cwd, found, matching)
    return found


def _find(
    pattern: str, directory: str | None, cwd: Path
) -> tuple[ExampleFiles, list[str]]:
    """Returns the files, perhaps none, and all matching paths, TFRecords or not."""
    if directory:
        base, below = Path(os.path.abspath(cwd / directory)), pattern
    else:
        base, below = _split(cwd, pattern)
    asked = None if _is_folder(base, below) else below
    if asked is None:
        folder = "" if below in ("", ".") else f"{os.path.normpath(below)}/"
        everything = _walk(base, folder.split("/"))
        matching = [path for path in everything if path.startswith(folder)]
    else:
        meant = _parse(asked)
        everything = _walk(base, [segment.text for segment in meant.segments])
        matching = [path for path in everything if meant.takes(path)]
    files = [path for path in matching if _may_hold_records(path)]
    wanted = set(files)
    others = tuple(path for path in everything if path not in wanted)
    return ExampleFiles(base, asked, tuple(files), others), matching


def _parse(pattern: str) -> FilePattern:
    try:
        return FilePattern.parse(pattern)
    except PatternError as error:
        raise UsageError(
            f"the pattern {pattern!r} is invalid",
            expected=error.expected,
            actual=error.actual,
            hint="correct the pattern after --examples, or give a directory to use all "
            "files below it",
        ) from error


def _is_folder(base: Path, below: str) -> bool:
    return not os.path.isabs(below) and (base / below).is_dir()


def _split(base: Path, pattern: str) -> tuple[Path, str]:
    """Splits a pattern before its first part that is not a plain directory."""
    whole = base / pattern
    if whole.is_dir():
        return Path(os.path.abspath(whole)), "."
    parts = whole.parts
    at = 1
    while at < len(parts) - 1:
        # A directory's name may have characters of a pattern.
        inside = Path(*parts[: at + 1])
        if _SPECIAL.search(parts[at]) and not inside.is_dir():
            break
        at += 1
    directory = Path(os.path.abspath(Path(*parts[:at])))
    return directory, "/".join(parts[at:])


def _walk(base: Path, named: Collection[str]) -> list[str]:
    """Returns the paths of the files below a directory, in order.

    Without hidden files, and without folders that wildcards do not match, such as
    ``_temporary``, unless the pattern names them.
    """
    found = []
    for folder, folders, names in os.walk(base, followlinks=True):
        folders[:] = sorted(n for n in folders if n[0] not in "._" or n in named)
        below = Path(folder).relative_to(base)
        shown = (n for n in names if n[0] != "." or n in named)
        found += [(below / name).as_posix() for name in shown]
    return sorted(found)


def _may_hold_records(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    return not name.startswith("_") and not name.endswith(tuple(_OTHER_SUFFIXES))


def _nothing(
    pattern: str,
    directory: str | None,
    cwd: Path,
    found: ExampleFiles,
    matching: list[str],
) -> UsageError:
    """Returns the error for a pattern without files, with what is there instead."""
    base = found.directory
    folder, missing = _missing(cwd / (directory or ""), pattern)
    names = _names(folder)
    if matching:
        actual = f"{len(matching):,} file(s), none of them a TFRecord by its name"
    else:
        actual = "no file" if base.is_dir() else "there is no such directory"
    if matching or (base.is_dir() and not any(map(_may_hold_records, found.others))):
        hint = (
            "write the data as tf.train.Examples with tf.io.TFRecordWriter first, "
            "or name another directory"
        )
    else:
        hint = _closest(pattern, directory, cwd, missing, names) or (
            f"name one of these in {folder}"
            if names
            else f"the pattern is relative to {cwd}"
        )
    return UsageError(
        f"the pattern {pattern!r} matches no TFRecord file",
        where=base,
        expected="at least one TFRecord file of tf.Examples",
        actual=actual,
        examples=list(found.others) if matching else names,
        hint=hint,
    )


def _missing(start: Path, pattern: str) -> tuple[Path, str | None]:
    """Returns the last folder of a path that exists, and the name missing in it."""
    folder = Path(start.anchor)
    for name in (*start.parts[1:], *Path(pattern).parts):
        if name == "/" or (folder / name).is_dir():
            folder = folder / name
        else:
            return folder, None if _SPECIAL.search(name) else name
    return folder, None


def _names(folder: Path) -> list[str]:
    """Returns the entries of a folder that are not hidden, folders with a slash."""
    try:
        entries = sorted(path for path in folder.iterdir() if path.name[0] != ".")
    except OSError:
        return []
    return [f"{path.name}/" if path.is_dir() else path.name for path in entries]


def _closest(
    pattern: str,
    directory: str | None,
    cwd: Path,
    missing: str | None,
    names: list[str],
) -> str | None:
    """Returns similar options that do find records, as a hint."""
    options: list[tuple[str, str | None]] = []
    if missing:
        known = [name.rstrip("/") for name in names]
        for name in difflib.get_close_matches(missing, known, cutoff=0.5):
            options.append((_renamed(pattern, missing, name), directory))
            if directory:
                options.append((pattern, _renamed(directory, missing, name)))
    else:
        # A * does not match across folders.
        head, tail = os.path.split(pattern)
        folders = [name for name in names if name.endswith("/")][:_TRIED]
        options += [(os.path.join(head, name, tail), directory) for name in folders]
    found = [(other, folder) for other, folder in options if _finds(other, folder, cwd)]
    # With several folders it is not clear which one is meant.
    if not found or (len(found) > 1 and not missing):
        return None
    other, folder = found[0]
    words = ["--examples", other, *(["--dir", folder] if folder else [])]
    return f"did you mean: {shlex.join(words)}"


def _finds(pattern: str, directory: str | None, cwd: Path) -> bool:
    try:
        return bool(_find(pattern, directory, cwd)[0].files)
    except UsageError:
        return False


def _renamed(path: str, name: str, other: str) -> str:
    return "/".join(other if part == name else part for part in path.split("/"))
