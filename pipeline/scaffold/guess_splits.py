"""Guesses splits from the names of files.

The patterns of a guess match exactly its files: each file once, and no other file in
the directory. Where the names do not tell the splits, records are split by hash.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.scaffold.find_examples import ExampleFiles
from sluice.errors import UsageError
from sluice.storage.file_pattern import FilePattern, PatternError

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


@dataclass(frozen=True)
class SplitGuess:
    """How the records are split.

    Attributes:
      splits: a file pattern for each split; empty where ``files`` is given.
      files: one pattern of all files, whose records are split by hash.
      spanned: whether the patterns have ``{SPAN}`` or a date.
      why: the reason, for people.
    """

    splits: Mapping[str, str]
    files: str | None
    spanned: bool
    why: str


def guess_splits(examples: ExampleFiles) -> SplitGuess:
    """Returns the splits that the files' names suggest.

    Spans, dates and versions are those of the requested pattern.

    Raises:
      UsageError: no pattern can be written for the files.
    """
    files = _with_placeholders(examples)
    spanned = any(path != file for file, path in files.items())
    groups: dict[str, dict[str, str]] = {}
    for file, path in files.items():
        found = _WORD.findall(path)
        split = _WORDS[found[-1].lower()] if found else ""
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
            return SplitGuess(named, None, spanned, why)
        why = "no file pattern separates the splits"
    pattern = _pattern(files, examples.others, examples.pattern)
    if pattern is None:
        raise UsageError(
            "no single file pattern matches exactly these files",
            where=examples.directory,
            examples=examples.files,
            hint="move the records into a directory of their own",
        )
    return SplitGuess({}, pattern, spanned, why)


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
    patterns += ["*", "*.tfrecord*", "*.tfrecords*"]
    if len(names) > 1:
        patterns.append(_escaped(re.sub(r"\d+$", "", prefix)) + "*")
    return [*patterns, _escaped(names[0])]


def _escaped(text: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", text)
