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

from components.tfrecord_gen.input_files import MANIFEST_FILE
from components.tfrecord_gen.report import FileReport, Problem
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
    seen: dict[object, FileReport] = {}
    for file in files:
        # Shards without records are all the same, and no duplicates.
        if not file.records and not file.quarantined:
            continue
        content = file.content_bytes, file.content_crc32c
        other_way = "gzip" if file.compression == "none" else "none"
        if same := seen.get(file.sha256):
            actual = f"the bytes of {same.path}"
        elif same := seen.get((*content, other_way)):
            actual = f"the content of {same.path} with another compression"
        else:
            seen[file.sha256] = seen[(*content, file.compression)] = file
            continue
        what = "This file duplicates another one: its records would count twice."
        yield Problem("duplicate_shard", file.path, what, "unique content", actual)


def _missing(
    folder: str, files: Sequence[FileReport], names: Iterable[str]
) -> Iterator[Problem]:
    there = _shards_by_set(names)
    for key in sorted(_shards_by_set(os.path.basename(file.path) for file in files)):
        prefix, total, suffix = key
        count = int(total) - sum(index < int(total) for index in there[key])
        if count > 0:
            absent = (f"{n:05d}" for n in range(int(total)) if n not in there[key])
            more = ", ..." if count > MAX_EXAMPLES else ""
            yield Problem(
                "missing_shard",
                os.path.join(folder, f"{prefix}-*-of-{total}{suffix}"),
                "Files of this set are missing.",
                f"{int(total):,} files",
                f"{int(total) - count:,} files, without "
                + ", ".join(islice(absent, min(count, MAX_EXAMPLES)))
                + more,
            )


def _shards_by_set(names: Iterable[str]) -> dict[tuple[str, str, str], set[int]]:
    """Returns the shard indices of each set: by prefix, number of files and suffix."""
    found: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for name in names:
        if match := _SHARD_NAME.fullmatch(name):
            prefix, index, total, suffix = match.groups()
            found[prefix, total, suffix].add(int(index))
    return found


def _against_manifest(
    folder: str, files: Sequence[FileReport], names: set[str]
) -> Iterator[Problem]:
    path = os.path.join(folder, MANIFEST_FILE)
    try:
        fields = json.loads(storage_for(path).read(path))
    except (OSError, ValueError, RecursionError) as error:
        what = "The manifest cannot be read."
        yield Problem("manifest", path, what, "JSON", str(error))
        return
    shards = fields.get("shards") if isinstance(fields, dict) else None
    entries = shards if isinstance(shards, list) else []
    listed = {str(x["name"]): x for x in entries if isinstance(x, dict) and "name" in x}
    if not listed:
        return  # Another format.
    for file in files:
        entry = listed.get(os.path.basename(file.path))
        if entry is None:
            what, wanted = "This file is not in the manifest.", "a file that it lists"
            yield Problem("manifest", file.path, what, wanted, "another one")
            continue
        # A file that was cut before it was digested has the digest, but not the count.
        counted = file.quarantined or entry.get("records") == file.records
        if entry.get("sha256") != file.sha256 or not counted:
            yield Problem(
                "manifest",
                file.path,
                "This file does not match the manifest.",
                f"{entry.get('records')} records, SHA-256 {entry.get('sha256')}",
                f"{file.records} records, SHA-256 {file.sha256}",
            )
    for name in sorted(set(listed) - names):
        what = "A file that the manifest lists is missing."
        path = os.path.join(folder, name)
        yield Problem("manifest", path, what, "the file", "no such file")
