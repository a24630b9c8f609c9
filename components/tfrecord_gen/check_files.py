"""Finds inconsistencies between files: duplicates, incomplete sets, manifests.

A shard cut between two records is a valid file, and so is each of two copies of one
shard. They show only in a manifest, in names with a number of files
(``-00000-of-00004``), or in the files' digests.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from components.tfrecord_gen.ingestion_report import FileReport, Problem
from components.tfrecord_gen.input_files import MANIFEST_FILE
from sluice.errors import MAX_EXAMPLES
from sluice.storage.storage import storage_for

_SHARD_NAME = re.compile(r"(.*)-(\d{5,})-of-(\d{5,})(.*)", re.DOTALL)


def check_files(files: Sequence[FileReport]) -> tuple[Problem, ...]:
    """Returns duplicates, incomplete sets, and contradictions to manifests."""
    folders: dict[str, list[FileReport]] = defaultdict(list)
    for file in files:
        folders[os.path.dirname(file.path)].append(file)
    problems = list(_duplicates(files))
    for folder, inside in folders.items():
        names = set(storage_for(folder).names(folder or "."))
        problems += _missing(folder, inside, names)
        if MANIFEST_FILE in names:
            problems += _against_manifest(folder, inside, names)
    return tuple(problems)


def _duplicates(files: Sequence[FileReport]) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for file in files:
        same = seen.setdefault(file.sha256, file.path)
        # Shards without records are all the same, and no duplicates.
        if same != file.path and not file.is_empty:
            problem = f"has the bytes of {same}: its records would count twice"
            yield Problem("duplicate_shard", file.path, problem)


def _missing(
    folder: str, files: Sequence[FileReport], names: Iterable[str]
) -> Iterator[Problem]:
    there = _shards_by_set(names)
    for key in sorted(_shards_by_set(os.path.basename(file.path) for file in files)):
        prefix, total, suffix = key
        count = int(total) - sum(index < int(total) for index in there[key])
        if count > 0:
            absent = (f"{n:05d}" for n in range(int(total)) if n not in there[key])
            numbers = ", ".join(islice(absent, MAX_EXAMPLES))
            more = ", ..." if count > MAX_EXAMPLES else ""
            path = os.path.join(folder, f"{prefix}-*-of-{total}{suffix}")
            problem = f"lacks {count:,} of {int(total):,} files: {numbers}{more}"
            yield Problem("missing_shard", path, problem)


def _shards_by_set(names: Iterable[str]) -> dict[tuple[str, str, str], set[int]]:
    """Returns the shard indices of each set: by prefix, number of files and suffix."""
    indices: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for name in names:
        if match := _SHARD_NAME.fullmatch(name):
            prefix, index, total, suffix = match.groups()
            indices[prefix, total, suffix].add(int(index))
    return indices


def _against_manifest(
    folder: str, files: Sequence[FileReport], names: set[str]
) -> Iterator[Problem]:
    path = os.path.join(folder, MANIFEST_FILE)
    try:
        manifest = json.loads(storage_for(path).read(path))
        listed = {entry["name"]: entry for entry in manifest["shards"]}
    except (KeyError, TypeError):
        return  # Another format.
    except (OSError, ValueError, RecursionError) as error:
        yield Problem("manifest", path, f"cannot be read: {error}")
        return
    for file in files:
        entry = listed.get(os.path.basename(file.path))
        if entry is None:
            yield Problem("manifest", file.path, "is not in the manifest")
            continue
        # A file that was cut before it was digested has the digest, but not the count.
        records = file.records + file.filtered
        counted = file.quarantined or entry.get("records") == records
        if entry.get("sha256") != file.sha256 or not counted:
            problem = (
                f"has {records} records and SHA-256 {file.sha256:.12}, in the "
                f"manifest {entry.get('records')} and {entry.get('sha256')!s:.12}"
            )
            yield Problem("manifest", file.path, problem)
    for name in sorted(set(listed) - names):
        path = os.path.join(folder, name)
        yield Problem("manifest", path, "is in the manifest, but not there")
