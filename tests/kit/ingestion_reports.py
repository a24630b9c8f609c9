"""Reports of ingestions, and files of records as they name them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from components.tfrecord_gen.ingestion_report import FileReport, Report
from sample_data.tf_example import encode
from sluice.storage import digest
from sluice.tfrecords import tfrecord


def a_file(
    path: Path, records: Sequence[dict[str, Any]], split: str | None = "train"
) -> FileReport:
    """Writes records as tf.Examples and returns the report of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tfrecord.write(path, [encode(record) for record in records])
    return FileReport(
        path=str(path),
        span=None,
        version=None,
        split=split,
        size_bytes=path.stat().st_size,
        sha256=digest.of_file(path),
        records=len(records),
        quarantined=0,
        lost_bytes=0,
    )


def a_report(*files: FileReport, **fields: Any) -> Report:
    """Returns the report of an ingestion without errors, with changes."""
    known: dict[str, Any] = {
        "splits": {},
        "records": 100,
        "quarantined": 0,
        "lost_bytes": 0,
        "corrupt_fraction": 0.0,
    }
    return Report(files, **(known | fields))
