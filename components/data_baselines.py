"""Data baselines: stored statistics of accepted data, one folder per acceptance.

``<store>/<time>-<span>-<fingerprint>`` has the statistics of each split, and
``record.json``, which is written last: without it the folder is not an entry. The
baseline of new data is found by the folders' names. Nothing is ever replaced.

A TFX resolver cannot replace this: it does not know which data was accepted, and with a
filter it does not compile for Vertex AI.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import NamedTuple

from google.protobuf.message import DecodeError

from components.tfrecord_gen.ingestion_report import Report
from schemas.data_statistics import Statistics
from sluice.config_section import Section
from sluice.errors import DataError
from sluice.storage import digest
from sluice.storage.storage import storage_for

RECORD_FILE = "record.json"
_NO_SPAN = "data"
_TIME = "%Y%m%dT%H%M%S.%fZ"


class Identity(NamedTuple):
    """What identifies data: its newest span, or ``data``, and a digest of its content.

    Both end the name of an entry's folder.
    """

    span: str
    fingerprint: str


class Entry(Section):
    """The ``record.json`` of accepted data."""

    name: str
    accepted_at: str
    run_id: str
    spans: tuple[int, ...]
    splits: dict[str, int]
    """The number of examples by split."""
    contents: tuple[str, ...] = ()
    """SHA-256 of each file."""
    override: str | None
    """A person's reason to accept it although the verdict failed."""


def identify(report: Report) -> Identity:
    """Returns the identity of ingested data; file names and order do not matter."""
    files = sorted([file.split or "", file.sha256] for file in report.files)
    fingerprint = digest.of_bytes(json.dumps(files).encode())[:16]
    span = str(max(report.spans)) if report.spans else _NO_SPAN
    return Identity(span, fingerprint)


def write_entry(
    store: str, identity: Identity, entry: Entry, statistics: Mapping[str, bytes]
) -> None:
    """Adds an entry.

    Args:
      store: a directory or an address such as ``gs://bucket/accepted``.
      identity: of the data.
      entry: its record.
      statistics: serialized, by split.

    Raises:
      OSError: the store cannot be written.
    """
    now = datetime.now(timezone.utc).strftime(_TIME)
    folder = os.path.join(store, "-".join((now, *identity)))
    storage = storage_for(folder)
    storage.make_folder(folder)
    for split, content in statistics.items():
        storage.write_atomically(os.path.join(folder, f"{split}.pb"), content)
    record = entry.model_dump_json(indent=2).encode()
    storage.write_atomically(os.path.join(folder, RECORD_FILE), record)


def read_entry(folder: str) -> tuple[Entry, dict[str, Statistics]]:
    """Returns an entry, and the statistics by split.

    Raises:
      DataError: a file of the entry is missing or damaged.
    """
    storage, path = storage_for(folder), folder
    statistics = {}
    try:
        path = os.path.join(folder, RECORD_FILE)
        entry = Entry.model_validate_json(storage.read(path))
        for split in entry.splits:
            path = os.path.join(folder, f"{split}.pb")
            statistics[split] = Statistics.FromString(storage.read(path))
    except (OSError, ValueError, DecodeError) as error:
        raise DataError(
            "the statistics of accepted data cannot be read, with which this data is "
            f"to be compared: {error}",
            where=path,
            hint="delete the folder, and data accepted before is compared with",
        ) from error
    return entry, statistics


def holds(store: str, report: Report) -> bool:
    """Whether ingested data is the newest that is stored, with the same splits.

    Raises:
      OSError, ValueError: the store or an entry of the data cannot be read.
    """
    own, storage = identify(report), storage_for(store)
    for identity, record in _newest_first(store):
        if storage.is_file(record):
            entry = Entry.model_validate_json(storage.read(record))
            return identity == own and entry.splits == report.splits
    return False


def find_data_baseline(store: str, own: Identity) -> str:
    """Returns the folder of the newest entry of other data; empty if there is none.

    Another version of the same span is not other data. A run repeated after its data
    was accepted finds the same baseline as before.

    Args:
      store: a directory or an address; it need not exist.
      own: identity of the data to compare.
    """
    for identity, record in _newest_first(store):
        same_span = identity.span == own.span != _NO_SPAN
        is_own = same_span or identity.fingerprint == own.fingerprint
        # Without the record it is being written, or its writer was killed.
        if not is_own and storage_for(store).is_file(record):
            return os.path.dirname(record)
    return ""


def entry_before(store: str, time: datetime) -> str:
    """Returns the folder of the newest entry before a time; empty if there is none."""
    latest = time.astimezone(timezone.utc).strftime(_TIME)
    for _, record in _newest_first(store):
        folder = os.path.dirname(record)
        if os.path.basename(folder) < latest and storage_for(store).is_file(record):
            return folder
    return ""


def _newest_first(store: str) -> Iterator[tuple[Identity, str]]:
    for name in sorted(storage_for(store).names(store), reverse=True):
        _, *identity = name.split("-")
        if len(identity) == 2:
            yield Identity(*identity), os.path.join(store, name, RECORD_FILE)
