"""Guesses splits, spans and versions from the names of files.

The patterns of a guess match exactly its files: each file once, and no other file in
the directory. Where the names do not tell the splits, records are split by hash.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.scaffold.find_examples import ExampleFiles
from pipeline.scaffold.span_placeholders import add_placeholders
from sluice.errors import UsageError
from sluice.storage.file_pattern import FilePattern, PatternError

_WORDS = {
    "train": "train",
    "training": "train",
    "eval": "eval",
    "evaluation": "eval",
    "val": "eval",
    "valid": "eval",
    "validation": "eval",
    "dev": "eval",
    "test": "test",
    "testing": "test",
}
_WORD = re.compile(
    rf"(?<![a-z])({'|'.join(sorted(_WORDS, key=len, reverse=True))})(?![a-z])",
    re.IGNORECASE,
)

_SEPARATORS = "-_. ="


@dataclass(frozen=True)
class SplitGuess:
    """How the records are split.

    Attributes:
      splits: a file pattern for each split; empty where ``files`` is given.
      files: one pattern of all files, whose records are split by hash.
      spanned: whether the patterns have ``{SPAN}`` or a date.
      why: the reason, for people.
      marker: a file such as ``_SUCCESS`` that is in the folder of every span; None
        where there is none.
    """

    splits: Mapping[str, str]
    files: str | None
    spanned: bool
    why: str
    marker: str | None = None


def guess_splits(examples: ExampleFiles) -> SplitGuess:
    """Returns the splits that the files' names suggest.

    Raises:
      UsageError: no pattern can be written for the files.
    """
    files = add_placeholders(examples)
    spanned = any("{" in path and path != file for file, path in files.items())
    members: dict[str, list[str]] = {}
    for file, path in files.items():
        members.setdefault(_split_of(path), []).append(file)
    groups = {name: tuple(members[name]) for name in sorted(members, key=_order)}
    why = "the names of the files do not name their split"
    if {"train", "eval"} <= set(groups) or {"train", "test"} <= set(groups):
        if "" not in groups:
            if guess := _by_files(groups, files, examples.others, spanned):
                return replace(guess, marker=_marker(files, examples.others))
            why = "no file pattern separates the splits"
        else:
            why = f"the name of {groups[''][0]} does not name a split"
    elif set(groups) - {""}:
        why = f"there are only files of {' and '.join(filter(None, groups))}"
    pattern = _pattern(files, examples.others, examples.pattern)
    if pattern is None:
        raise UsageError(
            "no single file pattern matches exactly these files",
            where=examples.directory,
            examples=[*examples.files],
            hint="put the records into a directory of their own, or give a pattern "
            "that matches fewer files",
        )
    marker = _marker(files, examples.others)
    return SplitGuess({}, pattern, spanned, why, marker)


def _by_files(
    groups: Mapping[str, tuple[str, ...]],
    files: Mapping[str, str],
    others: Sequence[str],
    spanned: bool,
) -> SplitGuess | None:
    splits: dict[str, str] = {}
    for name, group in groups.items():
        inside = {file: files[file] for file in group}
        outside = [file for file in files if file not in inside]
        pattern = _pattern(inside, [*outside, *others], None)
        if pattern is None:
            return None
        splits[name] = pattern
    why = "by the names of the files"
    if "eval" not in splits:
        # A config needs an eval split; the model gate then uses it, with a warning.
        splits = {"train": splits["train"], "eval": splits["test"]}
        why += "; there is no eval split, so the test files are used for it"
    return SplitGuess(splits, None, spanned, why)


def _marker(files: Mapping[str, str], others: Sequence[str]) -> str | None:
    """Returns the name of a marker file that every span's folder has."""
    folders = {file.rpartition("/")[0] for file in files}
    spelt = {path.rpartition("/")[0].rpartition("/")[2] for path in files.values()}
    if not all("{" in last for last in spelt):
        return None
    names = [
        {
            name
            for path in others
            for inside, _, name in [path.rpartition("/")]
            if inside == folder and name.startswith("_")
        }
        for folder in folders
    ]
    return min(set.intersection(*names), default=None)


def _order(split: str) -> int:
    return ("train", "eval", "test", "").index(split)


def _split_of(path: str) -> str:
    """Returns the split that the last such word of a path names, or ''."""
    found = _WORD.findall(path)
    return _WORDS[found[-1].lower()] if found else ""


def _pattern(
    inside: Mapping[str, str], outside: Sequence[str], requested: str | None
) -> str | None:
    """Returns the shortest pattern that matches all of ``inside`` and none ``outside``.

    ``inside`` has for each path the one with placeholders; ``requested`` comes first.
    """
    spelt = list(inside.values())
    candidates = [requested] if requested else []
    depths = {path.count("/") for path in spelt}
    if len(depths) == 1:
        folders = [path.rpartition("/")[0] for path in spelt]
        names = [path.rpartition("/")[2] for path in spelt]
        folder = _common_folder(folders)
        candidates += [f"{folder}{name}" for name in _name_patterns(names)]
    placeholders = re.findall(r"\{([A-Z]+)(?::\d+)?\}", spelt[0])
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


def _common_folder(folders: Sequence[str]) -> str:
    """Returns the folders' common parts, ``*`` where they differ, ending in ``/``."""
    if not folders[0]:
        return ""
    parts = zip(*(folder.split("/") for folder in folders), strict=True)
    common = (_escaped(part[0]) if len(set(part)) == 1 else "*" for part in parts)
    return "".join(f"{part}/" for part in common)


def _name_patterns(names: Sequence[str]) -> list[str]:
    # The same file name in every span needs no wildcard.
    same = len(set(names)) == 1 and "{" in names[0]
    patterns = [_escaped(names[0])] if same else []
    words = {match.group() for name in names for match in _WORD.finditer(name)}
    prefix, suffix = os.path.commonprefix(names), _common_suffix(names)
    for word in sorted(words, key=len):
        if word in prefix:
            start = prefix[: prefix.rindex(word) + len(word)]
            after = prefix[len(start) : len(start) + 1]
            separator = after if after and after in _SEPARATORS else ""
            patterns.append(f"{_escaped(start + separator)}*")
        patterns.append(f"*{_escaped(word)}*")
    patterns += ["*", "*.tfrecord*", "*.tfrecords*"]
    if len(names) > 1:
        start = _escaped(re.sub(r"\d+$", "", prefix))
        end = _escaped(suffix) if len(prefix) + len(suffix) <= len(names[0]) else ""
        patterns += [f"{start}*", f"*{end}", f"{start}*{end}"]
    return [*patterns, _escaped(names[0])]


def _common_suffix(names: Sequence[str]) -> str:
    return os.path.commonprefix([name[::-1] for name in names])[::-1]


def _escaped(text: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", text)
