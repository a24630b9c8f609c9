"""Ingestion report: files, splits, record errors and skipped spans."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from sluice.errors import MAX_EXAMPLES
from sluice.storage.storage import storage_for
from sluice.tfrecords.frame_encoding import MAX_RECORD_BYTES
from sluice.tfrecords.frame_reader import RecordError

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
        records: number of ingested records.
        quarantined: record errors; one that loses the rest of the file counts once.
        lost_bytes: decompressed bytes that could not be read.
        filtered: number of good records that ``examples.where`` leaves out.
    """

    path: str
    span: int | None
    version: int | None
    split: str | None
    size_bytes: int
    sha256: str
    records: int
    quarantined: int
    lost_bytes: int
    filtered: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether it holds no records, neither good nor bad ones."""
        return not (self.records or self.quarantined or self.filtered)


@dataclass(frozen=True)
class Problem:
    """An inconsistency between files, whose records may all be good.

    Attributes:
        kind: "duplicate_shard", "missing_shard" or "manifest".
        path: the file, or the set of files.
        what: what is wrong with it.
    """

    kind: str
    path: str
    what: str


@dataclass(frozen=True)
class EqualRecords:
    """Records of a split that another has as well, or the same split has before.

    Attributes:
        split: where they are.
        other: where they are as well: an earlier split in the config, or the same.
        records: how many.
        examples: the first five, each with the first record that it is equal to.
    """

    split: str
    other: str
    records: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Expected:
    """How the records of a split meet a condition of ``validate.expect``.

    Attributes:
        rule: the condition.
        split: of the records.
        records: their number.
        broken: for how many it is false.
        unknown: for how many values are missing that it needs.
        examples: the first five records for which it is false.
    """

    rule: str
    split: str
    records: int
    broken: int
    unknown: int
    examples: tuple[str, ...] = ()

    def plus(self, other: Expected) -> Expected:
        """Returns the counts of both, which are of the same rule and split."""
        return Expected(
            self.rule,
            self.split,
            self.records + other.records,
            self.broken + other.broken,
            self.unknown + other.unknown,
            (*self.examples, *other.examples)[:MAX_EXAMPLES],
        )


@dataclass(frozen=True)
class Report:
    """Report of an ingestion.

    Attributes:
        files: the input files in order.
        splits: number of ingested records by split.
        records: number of ingested records.
        quarantined: record errors of all files.
        lost_bytes: decompressed bytes that could not be read.
        corrupt_fraction: 0..1, the largest of the fractions of record errors, of bad
            and lost bytes, and of files that are lost completely.
        errors: number of record errors by kind.
        first_errors: the first five of each kind, without the records' bytes.
        problems: inconsistencies between the files.
        spans: that were ingested, in order.
        skipped_spans: a line per span that was not.
        quarantine_cut: whether some bad records did not fit into the quarantine.
        max_record_bytes: longer records were quarantined unread.
        where: the condition on the records that were kept; None for all.
        equal: records that are there more than once.
        expected: how the splits meet the conditions of ``validate.expect``.
        contents: of files and manifests, see ``Window.contents``.
    """

    files: tuple[FileReport, ...]
    splits: dict[str, int]
    records: int
    quarantined: int
    lost_bytes: int
    corrupt_fraction: float
    errors: Mapping[str, int] = field(default_factory=dict)
    first_errors: tuple[RecordError, ...] = ()
    problems: tuple[Problem, ...] = ()
    spans: tuple[int, ...] = ()
    skipped_spans: tuple[str, ...] = ()
    quarantine_cut: bool = False
    max_record_bytes: int = MAX_RECORD_BYTES
    where: str | None = None
    equal: tuple[EqualRecords, ...] = ()
    expected: tuple[Expected, ...] = ()
    contents: Mapping[str, str] = field(default_factory=dict)

    @property
    def empty_files(self) -> list[str]:
        """The files without records, as Spark and Beam write them."""
        return [file.path for file in self.files if file.is_empty]

    def to_json(self) -> bytes:
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
    """Returns the report with ``MAX_FILES`` files, those with errors first.

    Raises:
      OSError: the report cannot be read.
      ValueError: it is damaged.
    """
    document = asdict(Report.load(str(directory)))
    del document["contents"]
    document["filtered"] = sum(file["filtered"] for file in document["files"])
    files = sorted(document["files"], key=lambda file: not file["quarantined"])
    left_out = max(0, len(files) - MAX_FILES)
    return {**document, "files": files[:MAX_FILES], "files_left_out": left_out}
