"""The readable records of files that have been ingested, for another look."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from components.tfrecord_gen.checking.scan import scan
from sluice.errors import SluiceError
from sluice.records.frame_reader import Record
from sluice.records.tfrecord_framing import MAX_RECORD_BYTES


def sound_records(
    path: str, max_record_bytes: int = MAX_RECORD_BYTES
) -> Iterator[Record]:
    """Yields the records whose bytes are tf.Examples.

    Some of them may be in quarantine: for their image, or the feature that they are
    split by. Where a file cannot be read any further, be it that it has gone or changed
    since, there are just no more.
    """
    with contextlib.suppress(SluiceError):
        for record in scan(path, max_record_bytes):
            if isinstance(record, Record):
                yield record
