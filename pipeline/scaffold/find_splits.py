"""Finds the data files that match a pattern, and guesses splits from their names.

The pattern is a file pattern, which may have ``{SPAN}`` and other placeholders, or a
directory, of which all files match. Files that are not TFRecords by their name, such as
``.json``, are left out; Parquet and CSV files are taken where there are no others.

Folders whose names are days, or numbers of days, become ``{YYYY}-{MM}-{DD}`` and the
like, or ``{SPAN}``. The patterns of a guess match exactly its files: each file once,
and no other file in the directory. Where the names do not tell the splits, records are
split by hash.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sluice.errors import UsageError
from sluice.storage.file_pattern import FilePattern, PatternError
from sluice.storage.storage import is_remote
from sluice.table_files import SUFFIXES, is_table

_SPECIAL = re.compile(r"[*?\[{]")
_OTHER_SUFFIXES = tuple(
    ".json .jsonl .txt .md .tsv .yaml .yml .pbtxt .pb .py .html .log "
    ".zip .tar .png .jpg .jpeg .npy .crc .idx .index".split()
)
_SPLITS = {
    "train": ("train", "training"),
    "eval": ("eval", "evaluation", "val", "valid", "validation", "dev"),
    "test": ("test", "testing"),
}
_WORDS = {word: split for split, words in _SPLITS.items() for word in words}
_WORD = re.compile(
    rf"(?<![a-z])({'|'.join(sorted(_WORDS, key=len, reverse=True))})(?![a-z])",
    re.IGNORECASE,
)
_SEPARATORS = "-_. ="
# Folders such as 2026-11-30, 20261130 and year=2026/month=11/day=30; day-7, span_7.
_DAYS = (
    (
        r"(?<!\d)\d{4}([-_./]|/month=)?(?:0[1-9]|1[0-2])([-_./]|/day=)?"
        r"(?:0[1-9]|[12]\d|3[01])(?!\d)(?=.*/)",
        r"{YYYY}\1{MM}\2{DD}",
    ),
    (r"(?<![a-z])((?:day|span)[-_=]?)\d+(?=[^/]*/)", r"\1{SPAN}"),
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


@dataclass(frozen=True)
class SplitGuess:
    """How the records are split.

    Attributes:
      splits: a file pattern for each split; empty where ``files`` is given.
      files: one pattern of all files, whose records are split by hash.
      window: how many spans to train on, 0 if the patterns have neither ``{SPAN}`` nor
        a date: 1 where they were requested, otherwise all that there are.
      why: the reason, for people.
    """

    splits: Mapping[str, str]
    files: str | None
    window: int
    why: str


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
    files = files or [path for path in matching if is_table(path)]
    if not files:
        raise UsageError(
            f"the pattern {pattern!r} matches no TFRecord, Parquet or CSV file",
            where=base,
            examples=matching or everything,
        )
    wanted = set(files)
    others = tuple(path for path in everything if path not in wanted)
    return ExampleFiles(base, asked, tuple(files), others)


def guess_splits(examples: ExampleFiles) -> SplitGuess:
    """Returns the splits that the files' names suggest.

    Spans, dates and versions are those of the requested pattern, or else the days that
    all folders are called after.

    Raises:
      UsageError: no pattern can be written for the files.
    """
    if days := _with_days(examples):
        with suppress(UsageError):
            return _guess(examples, *days)
    files = _with_placeholders(examples)
    return _guess(examples, files, int([*files] != [*files.values()]))


def _guess(examples: ExampleFiles, files: Mapping[str, str], window: int) -> SplitGuess:
    """Returns the splits of files, whose paths are given with placeholders, too."""
    groups: dict[str, dict[str, str]] = {}
    for file, path in files.items():
        words = _WORD.findall(path)
        split = _WORDS[words[-1].lower()] if words else ""
        groups.setdefault(split, {})[file] = path
    why = "the names of the files do not name their split"
    if "train" in groups and "" not in groups and len(groups) > 1:
        named = {}
        for name in filter(groups.get, _SPLITS):
            outside = [*(files.keys() - groups[name]), *examples.others]
            if pattern := _pattern(groups[name], outside):
                named[name] = pattern
        if len(named) == len(groups):
            why = "by the names of the files"
            if "eval" not in named:
                # A config needs an eval split; the model gate then uses it.
                named = {"train": named["train"], "eval": named["test"]}
                why += "; there is no eval split, so the test files are used for it"
            return SplitGuess(named, None, window, why)
        why = "no file pattern separates the splits"
    pattern = _pattern(files, examples.others, examples.pattern)
    if pattern is None:
        raise UsageError(
            "no single file pattern matches exactly these files",
            where=examples.directory,
            examples=examples.files,
            hint="move the records into a directory of their own",
        )
    return SplitGuess({}, pattern, window, why)


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
    paths = []
    for folder, folders, names in os.walk(base, followlinks=True):
        folders[:] = [name for name in folders if name[0] not in "._"]
        below = Path(folder).relative_to(base)
        paths += [(below / name).as_posix() for name in names if name[0] != "."]
    return sorted(paths)


def _may_hold_records(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    is_other = name.startswith("_") or name.endswith(_OTHER_SUFFIXES)
    return not (is_other or is_table(name))


def _with_days(examples: ExampleFiles) -> tuple[dict[str, str], int] | None:
    """Returns each path with placeholders for its day, and how many days there are."""
    for days, placeholders in () if "{" in (examples.pattern or "") else _DAYS:
        found = {path: re.search(days, path) for path in examples.files}
        if all(found.values()):
            spelt = {path: re.sub(days, placeholders, path, count=1) for path in found}
            return spelt, len({day[0] for day in found.values() if day})
    return None


def _with_placeholders(examples: ExampleFiles) -> dict[str, str]:
    """Returns each path with the placeholders of the requested pattern in it."""
    requested = FilePattern.parse(examples.pattern) if examples.pattern else None
    if requested is None or not requested.placeholders:
        return {path: path for path in examples.files}
    return {
        path: "/".join(
            segment.spell(name)
            for segment, name in zip(requested.segments, path.split("/"), strict=True)
        )
        for path in examples.files
    }


def _pattern(
    inside: Mapping[str, str], outside: Sequence[str], requested: str | None = None
) -> str | None:
    """Returns the shortest pattern that matches all of ``inside`` and none ``outside``.

    ``inside`` has for each path the one with placeholders; ``requested`` comes first.
    """
    spelt = [path.split("/") for path in inside.values()]
    candidates = [requested] if requested else []
    if len({len(parts) for parts in spelt}) == 1:
        *folders, names = zip(*spelt, strict=True)
        same = (_escaped(part[0]) if len(set(part)) == 1 else "*" for part in folders)
        folder = "".join(f"{part}/" for part in same)
        candidates += [f"{folder}{name}" for name in _name_patterns(names)]
    placeholders = re.findall(r"\{([A-Z]+)(?::\d+)?\}", "/".join(spelt[0]))
    for candidate in candidates:
        try:
            pattern = FilePattern.parse(candidate)
        except PatternError:  # A name may have braces that are not a placeholder's.
            continue
        if list(pattern.placeholders) != placeholders:
            continue
        if all(map(pattern.takes, inside)) and not any(map(pattern.takes, outside)):
            return candidate
    return None


def _name_patterns(names: Sequence[str]) -> list[str]:
    # The same file name in every span needs no wildcard.
    same = len(set(names)) == 1 and "{" in names[0]
    patterns = [_escaped(names[0])] if same else []
    words = {match.group() for name in names for match in _WORD.finditer(name)}
    prefix = os.path.commonprefix(names)
    for word in sorted(words, key=len):
        if word in prefix:
            start = prefix[: prefix.rindex(word) + len(word)]
            after = prefix[len(start) : len(start) + 1]
            separator = after if after and after in _SEPARATORS else ""
            patterns.append(f"{_escaped(start + separator)}*")
        patterns.append(f"*{_escaped(word)}*")
    patterns += ["*", "*.tfrecord*", "*.tfrecords*", *(f"*{x}" for x in SUFFIXES)]
    if len(names) > 1:
        patterns.append(_escaped(re.sub(r"\d+$", "", prefix)) + "*")
    return [*patterns, _escaped(names[0])]


def _escaped(text: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", text)
