"""Ingestion report: files, splits, record errors and skipped spans."""

from __future__ import annotations

import builtins
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from sluice.storage.storage import storage_for
from sluice.tfrecords.frame_encoding import MAX_RECORD_BYTES

REPORT_FILE = "report.json"


@dataclass(frozen=True)
class FileReport:
    """One input file.

    Attributes:
        path: the file.
        span: its span, None without spans.
        version: the version of the span, None without versions.
        split: the split of its records; None if they were hashed.
        size_bytes: size of the file.
        sha256: digest of the file, hexadecimal.
        compression: "none" or "gzip", detected from the content.
        records: number of ingested records.
        quarantined: record errors; one that loses the rest of the file counts once.
        lost_bytes: decompressed bytes that could not be read.
        content_bytes: decompressed bytes that could be read.
        content_crc32c: their CRC-32C.
    """

    path: str
    span: int | None
    version: int | None
    split: str | None
    size_bytes: int
    sha256: str
    compression: str
    records: int
    quarantined: int
    lost_bytes: int
    content_bytes: int = 0
    content_crc32c: int = 0


@dataclass(frozen=True)
class SplitReport:
    """One split of the output.

    Attributes:
        records: number of records.
        shards: number of files, at least one.
    """

    records: int
    shards: int


@dataclass(frozen=True)
class FirstError:
    """One of the first record errors of a kind, without the record's bytes.

    Attributes:
        path: the file.
        record: number of the record, from 1; 0 for the file as a whole.
        offset: of the record in the decompressed stream, in bytes.
        kind: see ``RecordError``.
        reason: expected and actual.
    """

    path: str
    record: int
    offset: int
    kind: str
    reason: str


@dataclass(frozen=True)
class Problem:
    """An inconsistency between files, whose records may all be good.

    Attributes:
        kind: "duplicate_shard", "missing_shard" or "manifest".
        path: the file, or the set of files.
        what: one sentence.
        expected: expected state.
        actual: actual state.
    """

    kind: str
    path: str
    what: str
    expected: str
    actual: str


@dataclass(frozen=True)
class Report:
    """Report of an ingestion.

    Attributes:
        files: the input files in order.
        splits: the output by split.
        records: number of ingested records.
        quarantined: record errors of all files.
        lost_bytes: decompressed bytes that could not be read.
        bytes: decompressed bytes of all files, lost ones included.
        corrupt_fraction: 0..1, the largest of the fractions of record errors, of bad
            and lost bytes, and of files that are lost completely.
        errors: number of record errors by kind.
        first_errors: the first five of each kind.
        problems: inconsistencies between the files.
        spans: that were ingested, in order.
        skipped_spans: a line per span that was not.
        quarantine_cut: whether some bad records did not fit into the quarantine.
        max_record_bytes: longer records were quarantined unread.
    """

    files: tuple[FileReport, ...]
    splits: Mapping[str, SplitReport]
    records: int
    quarantined: int
    lost_bytes: int
    bytes: int
    corrupt_fraction: float
    errors: Mapping[str, int] = field(default_factory=dict)
    first_errors: tuple[FirstError, ...] = ()
    problems: tuple[Problem, ...] = ()
    spans: tuple[int, ...] = ()
    skipped_spans: tuple[str, ...] = ()
    quarantine_cut: bool = False
    max_record_bytes: int = MAX_RECORD_BYTES

    def to_json(self) -> builtins.bytes:
        """Returns what ``load`` reads."""
        return TypeAdapter(Report).dump_json(self, indent=2)

    @classmethod
    def load(cls, folder: str) -> Report:
        """Reads the ``report.json`` of a quarantine artifact, local or remote.

        Raises:
          OSError: there is none.
          ValueError: it is not a report.
        """
        content = storage_for(folder).read(os.path.join(folder, REPORT_FILE))
        return TypeAdapter(Report).validate_json(content)


MAX_FILES = 1000


def document_ingestion(directory: Path) -> dict[str, Any]:
    """Returns the report, with the first ``MAX_FILES`` files and those with errors.

    Raises:
      OSError: the report cannot be read.
      ValueError: it is damaged.
    """
    document = asdict(Report.load(str(directory)))
    files = document["files"]
    kept = [
        file
        for index, file in enumerate(files)
        if index < MAX_FILES or file["quarantined"]
    ][: 2 * MAX_FILES]
    return {**document, "files": kept, "files_left_out": len(files) - len(kept)}
