"""Scans a TFRecord file into checked records and record errors.

Bad bytes never raise, and TensorFlow is not imported for a local file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from sluice.errors import SluiceError
from sluice.tfrecords.frame_encoding import MAX_RECORD_BYTES
from sluice.tfrecords.frame_reader import Batch, Record, RecordError, read_frames
from sluice.tfrecords.input_stream import InputStream
from sluice.tfrecords.parse_tf_example import parse


def scan(
    path: str, max_record_bytes: int = MAX_RECORD_BYTES
) -> Iterator[Record | RecordError]:
    """Yields the good records of a file and its errors, in order.

    The file may be uncompressed or gzip (also of several members), whatever its name.
    Memory is bounded by a few megabytes and one record.

    Args:
      path: a local path, or an address with "://".
      max_record_bytes: a longer record is a record error, and is not read.

    Raises:
      UsageError: the file cannot be read.
    """
    with InputStream(path) as stream:
        for item in scan_batches(stream, max_record_bytes):
            if isinstance(item, RecordError):
                yield item
            else:
                yield from item


def scan_batches(
    stream: InputStream, max_record_bytes: int
) -> Iterator[Batch | RecordError]:
    """Yields the good records of a stream in batches, and its errors, in order.

    Raises:
      UsageError: the file cannot be read.
    """
    for item in read_frames(stream, max_record_bytes):
        if isinstance(item, RecordError):
            yield item
            continue
        try:
            for data in item.records:
                parse(data)
        except ValueError:
            yield from filter_records(stream.path, item, "not_example", _why_bad)
        else:
            yield item


def _why_bad(data: bytes) -> str | None:
    try:
        parse(data)
    except ValueError as error:
        return str(error)
    return None


def filter_records(
    path: str, batch: Batch, kind: str, reason: Callable[[bytes], str | None]
) -> Iterator[Batch | RecordError]:
    """Yields the good records of a batch, and an error for each bad one, in order.

    Args:
      path: the file.
      batch: its records.
      kind: of the errors.
      reason: what is wrong with a record, None if nothing is.
    """
    first = 0
    for index, record in enumerate(batch):
        if (why := reason(record.data)) is None:
            continue
        if index > first:
            yield batch.part(first, index)
        yield RecordError(path, record.number, record.offset, kind, why, record.data)
        first = index + 1
    if first < len(batch.records):
        yield batch.part(first, len(batch.records))


def valid_records(
    path: str, max_record_bytes: int = MAX_RECORD_BYTES
) -> Iterator[Record]:
    """Yields the records that are tf.Examples.

    Some of them may be in quarantine, for an image or a missing partition feature. An
    unreadable file, such as one deleted since the ingestion, just ends the records.
    """
    with contextlib.suppress(SluiceError):
        for record in scan(path, max_record_bytes):
            if isinstance(record, Record):
                yield record
