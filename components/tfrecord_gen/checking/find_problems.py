"""What is wrong between files, where every record may be good.

A shard cut between two records is a valid file: only a manifest beside it, or a set of
names that counts its files, can tell. And nothing else tells that a shard came twice.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from components.tfrecord_gen.report import FileReport, Problem
from components.tfrecord_gen.spans.manifest_file import MANIFEST_FILE
from sluice.files import storage

_SHARD_NAME = re.compile(
    r"(?P<prefix>.*)-(?P<index>\d{5,})-of-(?P<total>\d{5,})(?P<suffix>.*)", re.DOTALL
)
_MAX_NAMED = 5


def find_problems(files: Sequence[FileReport]) -> tuple[Problem, ...]:
    """Returns duplicates, incomplete sets, and what a manifest contradicts."""
    folders: dict[str, list[FileReport]] = defaultdict(list)
    for file in files:
        folders[os.path.dirname(file.path)].append(file)
    problems = list(_duplicates(files))
    for folder, inside in folders.items():
        names = set(storage.list_names(folder or "."))
        problems += _missing(folder, inside, names)
        if storage.is_file(os.path.join(folder, MANIFEST_FILE)):
            problems += _against_manifest(folder, inside, names)
    return tuple(problems)


def _duplicates(files: Sequence[FileReport]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for file in files:
        # Writers leave several shards without records, all the same.
        if not file.records and not file.quarantined:
            continue
        other = first.get(file.sha256)
        first.setdefault(file.sha256, file.path)
        if other is not None:
            yield Problem(
                "duplicate_shard",
                file.path,
                "This file's content came in before: its records count twice.",
                "a content of its own",
                f"the bytes of {other}",
            )


def _missing(
    folder: str, files: Sequence[FileReport], names: set[str]
) -> Iterator[Problem]:
    sets = _by_set(os.path.basename(file.path) for file in files)
    all_there = _by_set(names)
    for key in sorted(sets):
        prefix, total, suffix = key
        there = all_there[key] | sets[key]
        wanted = int(total)
        count = wanted - sum(index < wanted for index in there)
        if count <= 0:
            continue
        absent = (index for index in range(wanted) if index not in there)
        some = [f"{next(absent):05d}" for _ in range(min(count, _MAX_NAMED))]
        more = f" and {count - len(some):,} more" if count > len(some) else ""
        yield Problem(
            "missing_shard",
            os.path.join(folder, f"{prefix}-*-of-{total}{suffix}"),
            "Files of this set are missing.",
            f"{wanted:,} files",
            f"{wanted - count:,} files, without {', '.join(some)}{more}",
        )


def _by_set(names: Iterable[str]) -> dict[tuple[str, str, str], set[int]]:
    """Returns the indices of the names that count their files, by what they share."""
    found: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for name in names:
        if match := _SHARD_NAME.fullmatch(name):
            key = (match["prefix"], match["total"], match["suffix"])
            found[key].add(int(match["index"]))
    return found


def _against_manifest(
    folder: str, files: Sequence[FileReport], names: set[str]
) -> Iterator[Problem]:
    path = os.path.join(folder, MANIFEST_FILE)
    try:
        listed = _read_manifest(path)
    except (OSError, ValueError, RecursionError) as error:
        yield Problem(
            "manifest", path, "The manifest cannot be read.", "JSON", str(error)
        )
        return
    if listed is None:
        return
    for file in files:
        shard = listed.get(os.path.basename(file.path))
        if shard is None:
            yield Problem(
                "manifest",
                file.path,
                "This file is not in the manifest.",
                f"one of {len(listed):,} files",
                "a file that it does not list",
            )
        elif shard["sha256"] != file.sha256 or _miscounts(shard["records"], file):
            yield Problem(
                "manifest",
                file.path,
                "This file is not what the manifest says.",
                f"{shard['records']} records, SHA-256 {shard['sha256']}",
                f"{file.records} records, SHA-256 {file.sha256}",
            )
    for name in sorted(set(listed) - names):
        yield Problem(
            "manifest",
            os.path.join(folder, name),
            "A file that the manifest lists is missing.",
            f"{listed[name]['records']} records",
            "no such file",
        )


def _miscounts(listed: Any, file: FileReport) -> bool:
    """Whether a count is not that of the file, which was cut before its digest."""
    is_known = isinstance(listed, int) and not file.quarantined
    return is_known and listed != file.records


def _read_manifest(path: str) -> dict[str, dict[str, Any]] | None:
    """Returns the manifest's shards by name; None: a file of another making.

    Raises:
      OSError: it cannot be read.
      ValueError, RecursionError: it is not JSON, or nested without end.
    """
    fields = json.loads(storage.read_bytes(path))
    shards = fields.get("shards") if isinstance(fields, dict) else None
    if not isinstance(shards, list) or not all(
        isinstance(shard, dict)
        and {"name", "sha256", "records"} <= set(shard)
        and isinstance(shard["name"], str)
        for shard in shards
    ):
        return None
    return {shard["name"]: shard for shard in shards}
