"""Reads, writes and checks TFRecord files without TensorFlow.

A record is framed as its length (8 bytes, little-endian), the length's masked CRC-32C
(4 bytes), the data, and the data's masked CRC-32C (4 bytes):
https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details

``read`` raises at the first record error, where ``read_frames`` continues. It rejects a
suffix that does not match the compression, which TFX detects by the suffix only.

The framing has no end mark: a file cut exactly between two records is valid, and only a
manifest shows that records are missing.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from sluice.errors import DataError
from sluice.storage import atomic
from sluice.tfrecords.frame_encoding import MAX_RECORD_BYTES, frame
from sluice.tfrecords.frame_reader import read_frames
from sluice.tfrecords.input_stream import InputStream
from sluice.tfrecords.record_error import RecordError

_GZIP_SUFFIX = ".gz"
# Python's own, 9, takes eight times as long on images and saves 1 % (Fashion-MNIST).
_GZIP_LEVEL = 6
# Beam, which reads the files for TFX, would decompress these by their names
# (apache_beam.io.filesystem.CompressionTypes); TensorFlow's reader would not.
_OTHER_SUFFIXES = (".bz2", ".deflate", ".zst", ".zstd", ".xz", ".lzma")

_FRAMED = "a record's length followed by the checksum of the length"
_DAMAGED = "the file has been changed or damaged: copy or write it again"
_CUT = "copy or write the file again; compare its size with the original's"
# Message, expected state and hint by kind of record error.
_MESSAGES = {
    "empty_file": (
        "this TFRecord file holds no records",
        "at least one record",
        "write the file again, or remove it",
    ),
    "not_tfrecord": (
        "this file is not a TFRecord file",
        _FRAMED,
        "check the pattern; write tf.Example records with a TFRecord writer",
    ),
    "compression": (
        "this compressed TFRecord file is truncated or corrupt",
        "a complete compressed stream",
        _CUT,
    ),
    "truncated": (
        "this TFRecord file is truncated: bytes are missing at its end",
        "a whole record",
        _CUT,
    ),
    "length": ("a record's length does not match its checksum", _FRAMED, _DAMAGED),
    "checksum": (
        "a record's data does not match its checksum",
        "data with the checksum that follows it",
        _DAMAGED,
    ),
}


def write(path: str | Path, records: Iterable[bytes]) -> int:
    """Writes a TFRecord file atomically.

    It is gzip-compressed if its name ends in ``.gz``. The bytes depend on the records
    only; those of a compressed file also on Python's zlib.

    Returns:
      The number of records written.
    """
    with atomic.replacing(path) as file:
        if not _is_gzip_name(str(path)):
            return _write_frames(file, records)
        with gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as compressed:
            return _write_frames(compressed, records)


def read(
    path: str | Path,
    *,
    any_name: bool = False,
    max_record_bytes: int = MAX_RECORD_BYTES,
) -> Iterator[bytes]:
    """Yields the records of a file in order, each checked before it is yielded.

    Memory is bounded by a block of the file and one record.

    Args:
      path: the file, local or with "://".
      any_name: whether the suffix may differ from the compression (none, gzip or zlib);
        False for files that TFX reads.
      max_record_bytes: limit of a record.

    Raises:
      DataError: the file is empty, truncated, damaged, not a TFRecord, or its suffix
        does not match its compression, or a record is too long. Records before the
        error have been yielded.
      UsageError: the file cannot be read.
    """
    with InputStream(str(path)) as stream:
        if not any_name and stream.head:
            _check_name(stream)
        for item in read_frames(stream, max_record_bytes):
            if isinstance(item, RecordError):
                raise _data_error(item, max_record_bytes)
            yield from item.records
        if not stream.content_bytes:
            nothing = "no content after decompression"
            raise _data_error(RecordError(stream.path, 0, 0, "empty_file", nothing), 0)


def shards(folder: Path, name: str) -> list[Path]:
    """Returns the files ``NAME*.tfrecord`` of a folder in order, without empty ones.

    Beam writes a shard without records as an empty file, which ``read`` rejects.
    """
    paths = sorted(folder.glob(f"{name}*.tfrecord"))
    return [path for path in paths if path.stat().st_size]


def verify(path: str | Path) -> int:
    """Reads a whole file and returns the number of records, at least one.

    Raises:
      DataError, UsageError: as ``read`` does.
    """
    return sum(1 for _ in read(path))


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
    if error.kind not in ("empty_file", "not_tfrecord"):
        where += f", record {error.number:,} (at byte {error.offset:,})"
    if error.kind == "too_large":
        return too_large(where, error.reason, max_bytes)
    what, expected, hint = _MESSAGES[error.kind]
    return DataError(
        what, where=where, expected=expected, actual=error.reason, hint=hint
    )


def _is_gzip_name(path: str) -> bool:
    # Beam compares suffixes in lower case.
    return path.lower().endswith(_GZIP_SUFFIX)


def _write_frames(file: IO[bytes] | gzip.GzipFile, records: Iterable[bytes]) -> int:
    count = 0
    for record in records:
        file.write(frame(record))
        count += 1
    return count


def _check_name(stream: InputStream) -> None:
    """Raises if TFX would detect another compression by the suffix."""
    path, suffix = stream.path, Path(stream.path).suffix.lower()
    named, gzipped = _is_gzip_name(path), stream.compression == "gzip"
    if suffix in _OTHER_SUFFIXES:
        raise DataError(
            f"this file's compression ({suffix}) is not supported",
            where=path,
            expected="an uncompressed TFRecord file, or a gzip one named .gz",
            actual=f"a name that ends in {suffix}",
            hint="decompress the file, or compress it with gzip, and name it so",
        )
    if gzipped and not named:
        raise DataError(
            "this file is gzip-compressed, but its name does not end in .gz",
            where=path,
            expected="an uncompressed TFRecord file: TFX detects compression by the "
            "name",
            actual="gzip-compressed content",
            hint=f"rename it to {Path(path).name}.gz, or decompress it",
        )
    if named and not gzipped:
        raise DataError(
            "this file's name ends in .gz, but it is not gzip-compressed",
            where=path,
            expected="gzip-compressed content: TFX detects compression by the name",
            actual=f"other content (first bytes: {stream.head.hex(' ')})",
            hint="remove .gz from the name, or compress the file with gzip",
        )
    if stream.compression == "zlib":
        reason = f"zlib-compressed content (first bytes: {stream.head.hex(' ')})"
        raise _data_error(RecordError(path, 1, 0, "not_tfrecord", reason), 0)
