"""What is wrong between files, where every record may be good.

A shard cut between two records is a valid file: only a manifest beside it, or a set of
names that counts its files, can tell. And nothing else tells that a shard came twice.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from components.tfrecord_gen.reading import storage
from components.tfrecord_gen.report import FileReport, Problem
from components.tfrecord_gen.spans.manifest_file import MANIFEST_FILE

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
        if MANIFEST_FILE in names:
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
    sets = {
        (match["prefix"], match["total"], match["suffix"])
        for file in files
        if (match := _SHARD_NAME.fullmatch(os.path.basename(file.path)))
    }
    for prefix, total, suffix in sorted(sets):
        there = {
            int(match["index"])
            for name in names
            if (match := _SHARD_NAME.fullmatch(name))
            and (match["prefix"], match["total"], match["suffix"])
            == (prefix, total, suffix)
        }
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


def _against_manifest(
    folder: str, files: Sequence[FileReport], names: set[str]
) -> Iterator[Problem]:
    path = os.path.join(folder, MANIFEST_FILE)
    try:
        listed = _read_manifest(path)
    except ValueError as error:
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
        elif shard.get("sha256") != file.sha256:
            yield Problem(
                "manifest",
                file.path,
                "This file is not what the manifest says.",
                f"{shard.get('records')} records, SHA-256 {shard.get('sha256')}",
                f"{file.records} records, SHA-256 {file.sha256}",
            )
    for name in sorted(set(listed) - names):
        yield Problem(
            "manifest",
            os.path.join(folder, name),
            "A file that the manifest lists is missing.",
            f"{listed[name].get('records')} records",
            "no such file",
        )


def _read_manifest(path: str) -> dict[str, dict[str, Any]] | None:
    """Returns the manifest's shards by name; None: a file of another making.

    Raises:
      ValueError: it is not JSON.
    """
    with storage.open_file(path, "rb") as file:
        fields = json.loads(file.read())
    shards = fields.get("shards") if isinstance(fields, dict) else None
    if not isinstance(shards, list) or not all(
        isinstance(shard, dict) and {"name", "sha256", "records"} <= set(shard)
        for shard in shards
    ):
        return None
    return {shard["name"]: shard for shard in shards}
