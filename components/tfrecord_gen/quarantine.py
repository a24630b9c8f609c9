"""Quarantine: stores bad records, up to a limit of their number and size."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable

from components.tfrecord_gen.scan import scan
from components.tfrecord_gen.shard_writer import ShardWriter
from sluice.storage.storage import storage_for
from sluice.tfrecords.frame_encoding import MAX_MESSAGE_BYTES, frame
from sluice.tfrecords.frame_reader import Record, RecordError
from sluice.tfrecords.parse_tf_example import parse

QUARANTINE_FILE = "quarantine.tfrecord.gz"
MAX_RECORDS = 10_000
MAX_BYTES = 256 << 20


def quarantined(error: RecordError) -> bytes:
    """Returns a bad record as a tf.Example.

    Features: bytes (where they are known), file, kind and reason, offset and record.
    """
    example = parse(b"")
    feature = example.features.feature
    if error.data is not None:
        feature["bytes"].bytes_list.value.append(error.data)
    for name, text in (
        ("file", error.path),
        ("kind", error.kind),
        ("reason", error.reason),
    ):
        data = text.encode("utf-8", "surrogateescape")
        feature[name].bytes_list.value.append(data)
    feature["offset"].int64_list.value.append(error.offset)
    feature["record"].int64_list.value.append(error.number)
    return example.SerializeToString(deterministic=True)


class QuarantineWriter(ShardWriter):
    """Writes quarantined records into one file, up to the limits.

    It accepts the first records in order. So the part of a group of files has at least
    those of its records that the joined quarantine will have.
    """

    def __init__(self, path: str, level: int) -> None:
        super().__init__("quarantine", path, level, max_bytes=math.inf)

    def add(self, data: bytes) -> None:
        """Writes a record if there is room."""
        if self._records < MAX_RECORDS and self._bytes + len(data) <= MAX_BYTES:
            self.write(frame(data), 1)


def write_quarantine(folder: str, parts: Iterable[str]) -> int:
    """Joins parts in order, up to the limits; returns the number of records."""
    writer = QuarantineWriter(os.path.join(folder, ".part"), level=1)
    writer.write(b"", 0)
    for part in filter(storage_for(folder).exists, (f"{path}-0" for path in parts)):
        for record in scan(part, MAX_MESSAGE_BYTES):
            if isinstance(record, Record):
                writer.add(record.data)
    writer.close()
    (written,) = writer.parts
    path = os.path.join(folder, QUARANTINE_FILE)
    storage_for(folder).rename(written.path, path)
    return written.records
