"""Finds inconsistencies between files: duplicates, incomplete sets, manifests.

A shard cut between two records is a valid file, and so is each of two copies of one
shard. They show only in a manifest, in names with a number of files
(``-00000-of-00004``), or in the files' digests.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from components.tfrecord_gen.report import FileReport, Problem
from components.tfrecord_gen.spans.window import MANIFEST_FILE
from sluice.storage.storage import storage_for
from sluice.tfrecords.input_stream import InputStream

_SHARD_NAME = re.compile(
    r"(?P<prefix>.*)-(?P<index>\d{5,})-of-(?P<total>\d{5,})(?P<suffix>.*)", re.DOTALL
)
_MAX_NAMED = 5
# Keys of a manifest's entry; others are ignored.
_ENTRY = {"name": str, "sha256": str, "records": int}


def check_files(files: Sequence[FileReport]) -> tuple[Problem, ...]:
    """Returns duplicates, incomplete sets, and contradictions to manifests."""
    folders: dict[str, list[FileReport]] = defaultdict(list)
    for file in files:
        folders[os.path.dirname(file.path)].append(file)
    problems = list(_duplicates(files))
    for folder, inside in folders.items():
        storage = storage_for(folder)
        names = set(storage.names(folder or "."))
        problems += _missing(folder, inside, names)
        if storage.is_file(os.path.join(folder, MANIFEST_FILE)):
            problems += _against_manifest(folder, inside, names)
    return tuple(problems)


def _duplicates(files: Sequence[FileReport]) -> Iterator[Problem]:
    contents: dict[tuple[int, int], list[FileReport]] = defaultdict(list)
    for file in files:
        # Shards without records are all the same, and no duplicates.
        if not file.records and not file.quarantined:
            continue
        alike = contents[file.content_bytes, file.content_crc32c]
        other = next((item for item in alike if _is_same(item, file)), None)
        if other is None:
            alike.append(file)
            continue
        same = other.sha256 == file.sha256
        yield Problem(
            "duplicate_shard",
            file.path,
            "This file duplicates another one: its records would count twice.",
            "unique content",
            f"the bytes of {other.path}"
            if same
            else f"the content of {other.path} with another compression",
        )


def _is_same(one: FileReport, other: FileReport) -> bool:
    """Whether two files whose contents have one length and one CRC are the same."""
    if one.sha256 == other.sha256:
        return True
    # An uncompressed file is its content; a damaged stream may have none.
    if {one.compression, other.compression} == {"none"} or not one.content_bytes:
        return False
    return _content_sha256(one) == _content_sha256(other)


def _content_sha256(file: FileReport) -> str:
    if file.compression == "none":
        return file.sha256
    digest = hashlib.sha256()
    with InputStream(file.path) as stream:
        for block in stream.blocks():
            digest.update(block)
    return digest.hexdigest()


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
    """Returns the shard indices of each set: by prefix, number of files and suffix."""
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
        entries = _read_manifest(path)
    except (OSError, ValueError, RecursionError) as error:
        yield Problem(
            "manifest", path, "The manifest cannot be read.", "JSON", str(error)
        )
        return
    if not any(_has(entry, "name") for entry in entries):
        return  # Another format.
    for number, entry in enumerate(entries, 1):
        if absent := [key for key in _ENTRY if not _has(entry, key)]:
            yield Problem(
                "manifest",
                path,
                "An entry of the manifest cannot be used.",
                "a name, a sha256 and a number of records",
                f"entry {number:,} of {len(entries):,}, without {' and '.join(absent)}",
            )
    yield from _against_entries(
        folder, files, names, [entry for entry in entries if _has(entry, "name")]
    )


def _against_entries(
    folder: str,
    files: Sequence[FileReport],
    names: set[str],
    entries: Sequence[dict[str, Any]],
) -> Iterator[Problem]:
    listed = {entry["name"]: entry for entry in entries}
    for file in files:
        entry = listed.get(os.path.basename(file.path))
        if entry is None:
            yield Problem(
                "manifest",
                file.path,
                "This file is not in the manifest.",
                f"one of {len(listed):,} files",
                "a file that it does not list",
            )
        elif not all(_has(entry, key) for key in _ENTRY):
            continue  # Reported with the entry.
        elif entry["sha256"] != file.sha256 or _miscounts(entry["records"], file):
            yield Problem(
                "manifest",
                file.path,
                "This file does not match the manifest.",
                f"{entry['records']} records, SHA-256 {entry['sha256']}",
                f"{file.records} records, SHA-256 {file.sha256}",
            )
    for name in sorted(set(listed) - names):
        records = listed[name].get("records")
        yield Problem(
            "manifest",
            os.path.join(folder, name),
            "A file that the manifest lists is missing.",
            f"{records} records" if records is not None else "the file",
            "no such file",
        )


def _miscounts(listed: int, file: FileReport) -> bool:
    """Whether the number of records differs, in a file cut before it was digested."""
    return not file.quarantined and listed != file.records


def _has(entry: Any, key: str) -> bool:
    return isinstance(entry, dict) and type(entry.get(key)) is _ENTRY[key]


def _read_manifest(path: str) -> list[Any]:
    """Returns the manifest's entries; none if it has another format.

    Raises:
      OSError: it cannot be read.
      ValueError, RecursionError: it is not JSON, or nested too deep.
    """
    fields = json.loads(storage_for(path).read(path))
    shards = fields.get("shards") if isinstance(fields, dict) else None
    return shards if isinstance(shards, list) else []
