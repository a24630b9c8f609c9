"""Ingestion report: files, splits, record errors and skipped spans."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from components.tfrecord_gen.spans.window import SkippedSpan
from sluice.storage.storage import storage_for
from sluice.tfrecords.frame_encoding import MAX_RECORD_BYTES

REPORT_FILE = "report.json"
SCHEMA_VERSION = 2


@dataclass(frozen=True)
class FileReport:
    """One input file.

    Attributes:
        path: the file.
        span: its span, None without spans.
        version: the version of the span, None without versions.
        split: the split of its records; None: they were hashed.
        size_bytes: its size as it lies there.
        sha256: the digest of the file's own bytes, hexadecimal.
        compression: "none", "gzip" or "zlib", told by content.
        records: records that went on.
        quarantined: record errors; one that loses the rest of the file counts once.
        lost_bytes: bytes that could not be read, decompressed.
        content_bytes: bytes that could be read, decompressed.
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
        records: its records.
        shards: its files, at least one.
    """

    records: int
    shards: int


@dataclass(frozen=True)
class FirstError:
    """One of the first record errors of a kind, without the record's bytes.

    Attributes:
        path: the file.
        record: number of the record, from 1; 0: the file as a whole.
        offset: where it starts in the decompressed stream, in bytes.
        kind: what is wrong; see ``RecordError``.
        reason: what was expected and what was seen.
    """

    path: str
    record: int
    offset: int
    kind: str
    reason: str


@dataclass(frozen=True)
class Problem:
    """Something wrong between files, where every record may be good.

    Attributes:
        kind: "duplicate_shard", "missing_shard" or "manifest".
        path: the file, or the set of files.
        what: one sentence.
        expected: what would have been right.
        actual: what was found.
    """

    kind: str
    path: str
    what: str
    expected: str
    actual: str


@dataclass(frozen=True)
class Report:
    """What an ingestion did.

    Attributes:
        files: the input files in order.
        splits: per split what was written.
        records: records that went on.
        quarantined: record errors of all files.
        lost_bytes: bytes that could not be read, decompressed.
        bytes: bytes of all files, decompressed, with the lost ones.
        corrupt_fraction: 0..1, the largest of record errors among records, of bad and
            lost bytes among bytes, and of files that are lost whole among files.
        errors: per kind the number of record errors.
        first_errors: the first five of each kind.
        problems: what is wrong between the files.
        spans: the spans that were ingested, in order.
        skipped_spans: the spans that were not.
        quarantine_cut: whether the quarantine holds fewer records than were bad.
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
    skipped_spans: tuple[SkippedSpan, ...] = ()
    quarantine_cut: bool = False
    max_record_bytes: int = MAX_RECORD_BYTES

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as JSON has it."""
        return {"schema_version": SCHEMA_VERSION} | asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Report:
        """Returns the report that ``to_dict`` wrote.

        Raises:
          ValueError: it is of another version, or not a report.
        """
        if (version := fields.get("schema_version")) != SCHEMA_VERSION:
            raise ValueError(f"a report of version {version}, not {SCHEMA_VERSION}")
        return TypeAdapter(cls).validate_python(fields)

    @classmethod
    def load(cls, folder: str) -> Report:
        """Reads the ``report.json`` of a quarantine artifact, local or remote.

        Raises:
          OSError: there is none.
          ValueError: it is not a report of this version.
        """
        content = storage_for(folder).read(os.path.join(folder, REPORT_FILE))
        return cls.from_dict(json.loads(content))


MAX_FILES = 1000


def document_ingestion(directory: Path) -> dict[str, Any]:
    """Returns the report, with the first ``MAX_FILES`` files and those with errors.

    Raises:
      OSError: the report cannot be read.
      ValueError: it is damaged.
    """
    document = Report.load(str(directory)).to_dict()
    del document["schema_version"]
    files = document["files"]
    kept = [
        file
        for index, file in enumerate(files)
        if index < MAX_FILES or file["quarantined"]
    ][: 2 * MAX_FILES]
    return {**document, "files": kept, "files_left_out": len(files) - len(kept)}
