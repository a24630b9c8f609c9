"""Request and result of an ingestion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from components.tfrecord_gen.checking.hash_splits import HashSplits
from components.tfrecord_gen.checking.image_check import ImageCheck
from components.tfrecord_gen.report import FileReport, FirstError
from components.tfrecord_gen.spans.window import SkippedSpan, SourceFile
from components.tfrecord_gen.writing.shard_writer import Part
from sluice.errors import MAX_EXAMPLES
from sluice.tfrecords.frame_encoding import FRAME_BYTES, MAX_RECORD_BYTES
from sluice.tfrecords.frame_reader import RecordError


@dataclass(frozen=True)
class Ingestion:
    """The files of one window, and the checks of their records.

    Attributes:
        files: the files, in the order in which their records are written.
        hash_splits: divides the files whose split is None; None if there are none.
        images: features whose images are checked.
        max_record_bytes: longer records are quarantined unread.
        skipped_spans: for the report.
    """

    files: tuple[SourceFile, ...]
    hash_splits: HashSplits | None = None
    images: tuple[ImageCheck, ...] = ()
    max_record_bytes: int = MAX_RECORD_BYTES
    skipped_spans: tuple[SkippedSpan, ...] = ()


@dataclass
class Ingested:
    """Result for a group of files, or for all of them.

    Attributes:
        files: a report for each file.
        parts: shards without final names.
        bytes: decompressed bytes of the files, lost ones included.
        bad_bytes: bytes of bad records, and lost bytes.
        errors: number of errors by kind.
        first_errors: the first five of each kind.
    """

    files: list[FileReport] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    bytes: int = 0
    bad_bytes: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    first_errors: list[FirstError] = field(default_factory=list)

    def note(self, error: RecordError) -> None:
        """Counts an error."""
        self.errors[error.kind] += 1
        data_bytes = len(error.data or b"") + FRAME_BYTES
        self.bad_bytes += error.lost_bytes or data_bytes
        if self.errors[error.kind] <= MAX_EXAMPLES:
            self.first_errors.append(
                FirstError(
                    error.path, error.number, error.offset, error.kind, error.reason
                )
            )

    @classmethod
    def joined(cls, groups: Iterable[Ingested]) -> Ingested:
        """Returns the combined result of several groups, in order."""
        whole = cls()
        seen: Counter[str] = Counter()
        for group in groups:
            whole.files += group.files
            whole.parts += group.parts
            whole.bytes += group.bytes
            whole.bad_bytes += group.bad_bytes
            whole.errors += group.errors
            for error in group.first_errors:
                seen[error.kind] += 1
                if seen[error.kind] <= MAX_EXAMPLES:
                    whole.first_errors.append(error)
        return whole
