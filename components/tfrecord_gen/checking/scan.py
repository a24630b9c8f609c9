"""Reads a TFRecord file as checked records and named record errors.

Nothing here raises for bad bytes, and nothing imports TensorFlow for a local file.
"""

from __future__ import annotations

from collections.abc import Iterator

from components.tfrecord_gen.checking.check_examples import check_examples
from sluice.records.frame_reader import Batch, Record, read_frames
from sluice.records.input_stream import InputStream
from sluice.records.record_error import RecordError
from sluice.records.tfrecord_framing import MAX_RECORD_BYTES


def scan(
    path: str, max_record_bytes: int = MAX_RECORD_BYTES
) -> Iterator[Record | RecordError]:
    """Yields the good records of a file and its errors, in order.

    The file may be uncompressed, gzip (of several members too) or zlib, whatever its
    name. Memory stays at a few megabytes and one record.

    Args:
      path: a local path, or an address with "://".
      max_record_bytes: a longer record is a record error, and is not read.

    Raises:
      DataError: the file holds tf.SequenceExamples.
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
      DataError, UsageError: as ``scan`` does.
    """
    for item in read_frames(stream, max_record_bytes):
        if isinstance(item, RecordError):
            yield item
        else:
            yield from check_examples(stream.path, item)
