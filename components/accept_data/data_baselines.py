"""Data baselines: stored statistics of accepted data, one folder per data set.

``<store>/<name>/record.json`` lists the files beside it, the statistics of each split,
with their digests. It is written last and atomically, so an entry is complete or
absent, on a disk and in a bucket. A damaged entry is reported and skipped: one bad file
must not stop every later run.

A TFX resolver cannot replace this: it does not know which data was accepted, and with a
filter it does not compile for Vertex AI.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from components.accept_data.entry import Entry, SplitFacts
from components.tfrecord_gen.report import Report
from sluice.storage import digest
from sluice.storage.storage import PreconditionFailedError, storage_for

RECORD_FILE = "record.json"
_NAME_DIGITS = 12
_ATTEMPTS = 5


@dataclass(frozen=True)
class Identity:
    """Identity of a data set.

    Attributes:
      name: the newest span; without spans ``data-`` and part of the fingerprint.
      fingerprint: digest of the content of all source files and their splits.
    """

    name: str
    fingerprint: str


@dataclass(frozen=True)
class DataBaseline:
    """The stored data set that new data is compared with.

    Attributes:
      record: path of the entry's ``record.json``; empty if there is none.
      damaged: a line for each entry that cannot be read.
    """

    record: str
    damaged: tuple[str, ...]


@dataclass(frozen=True)
class SplitStatistics:
    """Statistics of one split to store: number of examples, and serialized proto."""

    examples: int
    content: bytes


def identify(report: Report) -> Identity:
    """Returns the identity of ingested data; file names and order do not matter."""
    files = sorted([file.split or "", file.sha256] for file in report.files)
    fingerprint = digest.of_bytes(json.dumps(files).encode())
    name = str(max(report.spans)) if report.spans else ""
    return Identity(name or f"data-{fingerprint[:_NAME_DIGITS]}", fingerprint)


def write_entry(
    store: str, entry: Entry, statistics: Mapping[str, SplitStatistics]
) -> Entry:
    """Writes an entry; an undamaged entry of the same data is kept.

    So data that is accepted again does not become the newest. If only its division into
    splits differs, the entry is rewritten with its old time. An entry of the same name
    with other data, an earlier version of the span, is replaced.

    Args:
      store: a directory or an address such as ``gs://bucket/accepted``.
      entry: without ``splits``.
      statistics: by split.

    Returns:
      The entry in the store.

    Raises:
      OSError: the store cannot be written, or concurrent writers of this entry won
        every attempt.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return _write_entry(os.path.join(store, entry.name), entry, statistics)
        except PreconditionFailedError:
            # Another writer replaced the entry: compare with the new one.
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def _write_entry(
    folder: str, entry: Entry, statistics: Mapping[str, SplitStatistics]
) -> Entry:
    storage = storage_for(folder)
    record = os.path.join(folder, RECORD_FILE)
    replaced = storage.stat(record).generation if storage.is_file(record) else None
    known = _known(folder)
    if known and known.fingerprint == entry.fingerprint:
        if known.counts == {key: item.examples for key, item in statistics.items()}:
            return known
        entry = replace(entry, accepted_at=known.accepted_at)
    splits = {}
    storage.make_folder(folder)
    for split, item in statistics.items():
        sha256 = digest.of_bytes(item.content)
        file = f"{split}-{sha256[:_NAME_DIGITS]}.pb"
        storage.write_atomically(os.path.join(folder, file), item.content)
        splits[split] = SplitFacts(item.examples, file, sha256)
    entry = replace(entry, splits=splits)
    content = entry.to_json().encode()
    if replaced is not None:
        storage.write_atomically(record, content, if_generation=replaced)
    elif not storage.write_if_absent(record, content):
        raise PreconditionFailedError(record)
    if known:
        _remove_replaced(folder, known, entry)
    return entry


def holds(store: str, report: Report) -> bool:
    """Whether ingested data is stored, undamaged and with the same splits."""
    identity = identify(report)
    known = _known(os.path.join(store, identity.name))
    return (
        known is not None
        and known.fingerprint == identity.fingerprint
        and known.counts
        == {split: item.records for split, item in report.splits.items()}
    )


def _known(folder: str) -> Entry | None:
    """Returns the entry in a folder; None if there is none or it is damaged."""
    try:
        return read_entry(os.path.join(folder, RECORD_FILE))[0]
    except (OSError, ValueError):
        return None


def read_entry(record: str) -> tuple[Entry, dict[str, bytes]]:
    """Returns an entry, and the serialized statistics by split.

    Args:
      record: path of its ``record.json``.

    Raises:
      OSError: a file of the entry cannot be read.
      ValueError: the record is invalid, or a file has changed since it was written.
    """
    storage = storage_for(record)
    entry = Entry.from_json(storage.read(record))
    found = {}
    for split, facts in entry.splits.items():
        content = storage.read(os.path.join(os.path.dirname(record), facts.file))
        if digest.of_bytes(content) != facts.sha256:
            raise ValueError(f"{facts.file} has changed since it was written")
        found[split] = content
    return entry, found


def find_data_baseline(store: str, identity: Identity) -> DataBaseline:
    """Returns the newest entry that is neither this data nor another version of it.

    So a run repeated after its data was accepted finds the same baseline as before.

    Args:
      store: a directory or an address; it need not exist.
      identity: of the data to compare.
    """
    others: list[tuple[str, int, str]] = []
    damaged = []
    storage = storage_for(store)
    for name in _names(store):
        record = os.path.join(store, name, RECORD_FILE)
        try:
            entry = Entry.from_json(storage.read(record))
        except FileNotFoundError:
            continue  # An entry being written, or its writer was killed.
        except (OSError, ValueError) as error:
            damaged.append(_skipped(record, error))
            continue
        if identity.name != name and identity.fingerprint != entry.fingerprint:
            newest_span = max(entry.spans, default=-1)
            others.append((entry.accepted_at, newest_span, record))
    # Only the selected entry's statistics are read: a store may have many entries.
    for *_, record in sorted(others, reverse=True):
        try:
            read_entry(record)
        except (OSError, ValueError) as error:
            damaged.append(_skipped(record, error))
            continue
        return DataBaseline(record, tuple(damaged))
    return DataBaseline("", tuple(damaged))


def _skipped(record: str, error: Exception) -> str:
    reason = getattr(error, "strerror", None) or str(error)
    return f"{os.path.dirname(record)} was skipped: {reason}"


def _names(store: str) -> list[str]:
    # isdir is false for a bucket that cannot be listed, and drift would go unchecked.
    try:
        names = storage_for(store).names(store)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [name for name in names if not name.startswith(".")]


def _remove_replaced(folder: str, known: Entry, entry: Entry) -> None:
    """Deletes the statistics files of the replaced entry.

    Other files may belong to a concurrent writer that has not written its record yet.
    """
    kept = {facts.file for facts in entry.splits.values()}
    for name in {facts.file for facts in known.splits.values()} - kept:
        # Another writer may have removed it.
        with contextlib.suppress(FileNotFoundError):
            storage_for(folder).delete(os.path.join(folder, name))
