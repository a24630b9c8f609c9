"""What is ingested, and how."""

from __future__ import annotations

from dataclasses import dataclass

from components.tfrecord_gen.checking.hash_splits import HashSplits
from components.tfrecord_gen.checking.image_check import ImageCheck
from components.tfrecord_gen.spans.window import SkippedSpan, SourceFile
from sluice.records.tfrecord_framing import MAX_RECORD_BYTES


@dataclass(frozen=True)
class Ingestion:
    """The files of one window, and what is asked of their records.

    Attributes:
        files: the files, in the order in which their records go on.
        hash_splits: divides the files whose split is None; None: there are none.
        images: features whose images are looked into.
        max_record_bytes: a longer record is put aside unread.
        skipped_spans: spans that were not taken, for the report.
    """

    files: tuple[SourceFile, ...]
    hash_splits: HashSplits | None = None
    images: tuple[ImageCheck, ...] = ()
    max_record_bytes: int = MAX_RECORD_BYTES
    skipped_spans: tuple[SkippedSpan, ...] = ()
