"""Reads, writes and checks TFRecord files without TensorFlow.

A record is framed as its length (8 bytes, little-endian), the length's masked CRC-32C
(4 bytes), the data, and the data's masked CRC-32C (4 bytes):
https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details

``read`` raises at the first record error, where ``read_frames`` continues.

The framing has no end mark: a file cut exactly between two records is valid, and only a
manifest shows that records are missing.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, Any

from sluice.errors import DataError
from sluice.storage import atomic
from sluice.tfrecords.frame_encoding import MAX_RECORD_BYTES, frame
from sluice.tfrecords.frame_reader import RecordError, read_frames
from sluice.tfrecords.input_stream import InputStream

_GZIP_SUFFIX = ".gz"
# Python's own, 9, takes eight times as long on images and saves 1 % (Fashion-MNIST).
_GZIP_LEVEL = 6


def write(path: str | Path, records: Iterable[bytes]) -> int:
    """Writes a TFRecord file atomically.

    It is gzip-compressed if its name ends in ``.gz``. The bytes depend on the records
    only; those of a compressed file also on Python's zlib.

    Returns:
      The number of records written.
    """
    written = 0
    with atomic.replacing(path) as file, _encoder(file, path) as target:
        for record in records:
            target.write(frame(record))
            written += 1
    return written


def read(
    path: str | Path, *, max_record_bytes: int = MAX_RECORD_BYTES
) -> Iterator[bytes]:
    """Yields the records of a file in order, each checked before it is yielded.

    Memory is bounded by a block of the file and one record.

    Args:
      path: the file, local or with "://"; whether it is gzip says its content.
      max_record_bytes: limit of a record.

    Raises:
      DataError: the file is truncated, damaged or not a TFRecord, or a record is too
        long. Records before the error have been yielded.
      UsageError: the file cannot be read.
    """
    with InputStream(str(path)) as stream:
        for item in read_frames(stream, max_record_bytes):
            if isinstance(item, RecordError):
                raise _data_error(item, max_record_bytes)
            yield from item.records


def too_large(where: object, actual: str, max_bytes: int) -> DataError:
    """Returns the error for a record, an image or a line over the limit."""
    return DataError(
        "a record is larger than the limit",
        where=where,
        expected=f"at most {max_bytes:,} bytes",
        actual=actual,
        hint="write smaller records; the limit of a pipeline is "
        "examples.max_record_bytes in its config",
    )


def _data_error(error: RecordError, max_bytes: int) -> DataError:
    where = error.path
    if error.kind != "not_tfrecord":
        where += f", record {error.number:,} (at byte {error.offset:,})"
    if error.kind == "too_large":
        return too_large(where, error.reason, max_bytes)
    return DataError(
        f"the records cannot be read: {error.reason}",
        where=where,
        hint="copy or write the file again",
    )


def _encoder(file: IO[bytes], path: str | Path) -> AbstractContextManager[Any]:
    if Path(path).suffix.lower() == _GZIP_SUFFIX:
        return gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0)
    return nullcontext(file)
