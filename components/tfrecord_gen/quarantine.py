"""Quarantine: stores bad records, up to a size limit."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable

from components.tfrecord_gen.scan import scan
from components.tfrecord_gen.shard_writer import ShardWriter
from sluice.storage.storage import storage_for
from sluice.tfrecords.frame_encoding import MAX_MESSAGE_BYTES, frame
from sluice.tfrecords.frame_reader import RecordError
from sluice.tfrecords.parse_tf_example import parse

QUARANTINE_FILE = "quarantine.tfrecord.gz"
MAX_RECORDS = 10_000
MAX_BYTES = 256 << 20


class QuarantineLimit:
    """Limit of the quarantine, for all files that a process reads.

    It accepts the first records in order, so each worker, which sees only some of the
    files, accepts at least the records that the joined quarantine will contain.

    Args:
      max_records: number of records to keep.
      max_bytes: bytes to keep; the last accepted record may exceed them.
    """

    def __init__(
        self, max_records: int = MAX_RECORDS, max_bytes: int = MAX_BYTES
    ) -> None:
        self.max_bytes = max_bytes
        self._records = max_records
        self._bytes = max_bytes

    def accepts(self, size: int) -> bool:
        """Whether there is room for a record of this size; if so, reserves it."""
        if self._records < 1 or self._bytes < 1 or size > self.max_bytes:
            return False
        self._records -= 1
        self._bytes -= size
        return True


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


class QuarantinePart(ShardWriter):
    """Bad records of one group of files, in a local file once there is one.

    Args:
      path: of the file, to which ``-0`` is added.
      limit: limit of the quarantine.
    """

    def __init__(self, path: str, limit: QuarantineLimit) -> None:
        super().__init__("quarantine", path, level=0, max_bytes=math.inf)
        self._limit = limit

    def add(self, error: RecordError) -> None:
        """Keeps a bad record if there is room."""
        if len(error.data or b"") > self._limit.max_bytes:
            return
        data = quarantined(error)
        if self._limit.accepts(len(data)):
            self.write(frame(data), 1)


def write_quarantine(folder: str, parts: Iterable[str]) -> int:
    """Joins parts in order, up to the limit; returns the number of records written."""
    limit = QuarantineLimit()
    path = os.path.join(folder, ".part")
    writer = ShardWriter("quarantine", path, level=1, max_bytes=math.inf)
    writer.write(b"", 0)
    records = 0
    for part in (f"{path}-0" for path in parts if os.path.exists(f"{path}-0")):
        for record in scan(part, MAX_MESSAGE_BYTES):
            if not isinstance(record, RecordError) and limit.accepts(len(record.data)):
                writer.write(frame(record.data), 1)
                records += 1
    writer.close()
    storage_for(folder).rename(
        writer.parts[0].path, os.path.join(folder, QUARANTINE_FILE)
    )
    return records
