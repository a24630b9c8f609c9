"""TFRecord files without TensorFlow: written, read, and checked before a run.

A record is framed as its length (8 bytes, little-endian), the length's masked CRC-32C
(4 bytes), the data, and the data's masked CRC-32C (4 bytes):
https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details

TFX tells a file's compression by its suffix alone, and a shard without records, or cut
short, can pass through the whole pipeline unseen. So this module refuses what TFX would
misread: a suffix that does not match the content, a file that holds no records, missing
or changed bytes. It never skips or repairs a record, and it does not look inside one.

The framing has no end mark: a file cut exactly between two records is a valid file, and
only a manifest can tell that records are missing.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from sluice.errors import DataError, UsageError
from sluice.records.tfrecord_framing import (
    CRC,
    HEADER,
    MAX_RECORD_BYTES,
    frame,
    length_of,
    masked_crc,
)

_Stream = IO[bytes] | gzip.GzipFile


class _Readable(Protocol):
    def read(self, count: int, /) -> bytes: ...


_CHUNK_BYTES = 1 << 20
_PACKED_BYTES = 1 << 17

_GZIP_SUFFIX = ".gz"
_GZIP_MAGIC = b"\x1f\x8b"
# Beam, which reads the files for TFX, would decompress these by their names
# (apache_beam.io.filesystem.CompressionTypes); TensorFlow's reader would not.
_OTHER_SUFFIXES = (".bz2", ".deflate", ".zst", ".zstd", ".xz", ".lzma")


def write(path: str | Path, records: Iterable[bytes]) -> int:
    """Writes a TFRecord file that appears whole or not at all.

    The bytes depend on the records alone; those of a compressed file also on the zlib
    that Python was built with.

    Args:
      path: the file; gzip-compressed if its name ends in ``.gz``.
      records: the records, in order.

    Returns:
      The number of records written.
    """
    path = Path(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            if _is_gzip_name(path):
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed:
                    count = _write_frames(compressed, records)
            else:
                count = _write_frames(file, records)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return count


def read(
    path: str | Path,
    *,
    any_name: bool = False,
    max_record_bytes: int = MAX_RECORD_BYTES,
) -> Iterator[bytes]:
    """Yields the records of a file in order, each checked before it is yielded.

    Memory stays at one record, whatever the size of the file.

    Args:
      path: the file.
      any_name: whether the file's compression (none, gzip or zlib) may be another than
        its name says; what reads it through TFX must not say so.
      max_record_bytes: a longer record is refused before it is read.

    Raises:
      DataError: the file is empty, cut short, changed, not a TFRecord, or compressed in
        another way than its name says, or a record is too long. Records before the
        fault have been yielded.
      UsageError: the file cannot be opened.
    """
    path = Path(path)
    try:
        with open(path, "rb", buffering=_CHUNK_BYTES) as file:
            if any_name:
                kind = _content_compression(file)
            else:
                _check_compression(path, file)
                kind = "gzip" if _is_gzip_name(path) else "none"
            if kind == "gzip":
                with gzip.GzipFile(fileobj=file, mode="rb") as content:
                    yield from _read_frames(path, content, max_record_bytes)
            else:
                stream: _Readable = file
                if kind == "zlib":
                    stream = io.BufferedReader(_ZlibFile(file), _CHUNK_BYTES)
                yield from _read_frames(path, stream, max_record_bytes)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            "This compressed TFRecord file is truncated or corrupt.",
            where=path,
            expected="a complete compressed stream",
            actual=str(error),
            hint="Copy or write the file again; compare its size with the original's.",
        ) from error
    except OSError as error:
        raise UsageError(
            "This TFRecord file cannot be read.",
            where=path,
            expected="a readable file",
            actual=error.strerror or str(error),
            hint="Check the path and its permissions.",
        ) from error


def shards(folder: Path, name: str) -> list[Path]:
    """Returns the files ``NAME*.tfrecord`` of a folder in order, without empty ones.

    Beam leaves a shard without records empty, which ``read`` refuses.
    """
    paths = sorted(folder.glob(f"{name}*.tfrecord"))
    return [path for path in paths if path.stat().st_size]


def verify(path: str | Path) -> int:
    """Reads a whole file and returns the number of its records, at least one.

    Raises:
      DataError, UsageError: as ``read`` does.
    """
    return sum(1 for _ in read(path))


def _is_gzip_name(path: Path) -> bool:
    # Beam compares suffixes in lower case.
    return path.name.lower().endswith(_GZIP_SUFFIX)


def _write_frames(file: _Stream, records: Iterable[bytes]) -> int:
    count = 0
    for record in records:
        file.write(frame(record))
        count += 1
    return count


def _check_compression(path: Path, file: _Stream) -> None:
    """Refuses a suffix that TFX would read in another way than the content wants."""
    suffix = path.suffix.lower()
    if suffix in _OTHER_SUFFIXES:
        raise DataError(
            f"This file's compression ({suffix}) is not supported.",
            where=path,
            expected="an uncompressed TFRecord file, or a gzip one named .gz",
            actual=f"a name that ends in {suffix}",
            hint="Decompress the file, or compress it with gzip, and name it so.",
        )
    head = file.read(HEADER.size)
    file.seek(0)
    if not head:
        raise _no_records(path, "a file of 0 bytes")
    # A TFRecord may begin with gzip's magic number (a first length of 35,615 does);
    # the checksum of the length tells them apart.
    plain = length_of(head) is not None
    gzipped = head.startswith(_GZIP_MAGIC) and not plain
    if gzipped and not _is_gzip_name(path):
        raise DataError(
            "This file is gzip-compressed, but its name does not end in .gz.",
            where=path,
            expected="an uncompressed TFRecord file: TFX tells compression by the name",
            actual="gzip-compressed content",
            hint=f"Rename it to {path.name}.gz, or decompress it.",
        )
    if _is_gzip_name(path) and not head.startswith(_GZIP_MAGIC):
        content = "an uncompressed TFRecord file" if plain else "no gzip content"
        raise DataError(
            "This file's name ends in .gz, but it is not gzip-compressed.",
            where=path,
            expected="gzip-compressed content: TFX tells compression by the name",
            actual=f"{content} (first bytes: {head.hex(' ')})",
            hint="Take .gz off the name, or compress the file with gzip.",
        )


def _content_compression(file: IO[bytes]) -> str:
    """Returns "none", "gzip" or "zlib", told by what the file begins with."""
    head = file.read(HEADER.size)
    file.seek(0)
    if length_of(head) is not None:
        return "none"
    if head.startswith(_GZIP_MAGIC):
        return "gzip"
    # RFC 1950: deflate, a window of at most 32 KiB, a check that 31 divides.
    deflate = len(head) > 1 and head[0] & 0x8F == 8
    return "zlib" if deflate and int.from_bytes(head[:2], "big") % 31 == 0 else "none"


class _ZlibFile(io.RawIOBase):
    """The content of a file of zlib streams, one after the other."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = zlib.decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads at least one byte; none only at the end of the last stream."""
        found = b""
        while not found:
            decoder = self._decoder
            packed = decoder.unused_data or decoder.unconsumed_tail
            packed = packed or self._file.read(_PACKED_BYTES)
            if not packed and decoder.eof:
                return 0
            if not packed:
                raise EOFError("the zlib stream ends early")
            if decoder.eof:
                self._decoder = zlib.decompressobj()
            found = self._decoder.decompress(packed, len(buffer))
        buffer[: len(found)] = found
        return len(found)


def _read_frames(path: Path, file: _Readable, max_bytes: int) -> Iterator[bytes]:
    offset = 0
    number = 0
    while header := file.read(HEADER.size):
        number += 1
        at = f"record {number:,} (at byte {offset:,})"
        if len(header) < HEADER.size:
            raise _truncated(path, at, "header", HEADER.size, len(header))
        length = length_of(header)
        if length is None:
            raise _bad_length(path, at, header, first=number == 1)
        if length > max_bytes:
            raise too_large(f"{path}, {at}", f"{length:,}", max_bytes)
        data = _read_up_to(file, length)
        if len(data) < length:
            raise _truncated(path, at, "data", length, len(data))
        footer = file.read(CRC.size)
        if len(footer) < CRC.size:
            raise _truncated(path, at, "checksum", CRC.size, len(footer))
        if CRC.unpack(footer)[0] != masked_crc(data):
            raise DataError(
                "A record's data does not match its checksum.",
                where=f"{path}, {at}",
                expected=f"data with the checksum {footer.hex()}",
                actual=f"{length:,} bytes with the checksum "
                f"{CRC.pack(masked_crc(data)).hex()}",
                hint="The file has been changed or damaged: copy or write it again.",
            )
        yield data
        offset += HEADER.size + length + CRC.size
    if not number:
        raise _no_records(path, "no content after decompression")


def _read_up_to(file: _Readable, count: int) -> bytes:
    """Reads ``count`` bytes, fewer at the end, never reserving memory for a claim."""
    if count <= _CHUNK_BYTES:
        return file.read(count)
    chunks = []
    while count and (chunk := file.read(min(count, _CHUNK_BYTES))):
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)


def _no_records(path: Path, actual: str) -> DataError:
    return DataError(
        "This TFRecord file holds no records.",
        where=path,
        expected="at least one record",
        actual=actual,
        hint="Write the file again, or remove it.",
    )


def _truncated(path: Path, at: str, part: str, wanted: int, found: int) -> DataError:
    return DataError(
        "This TFRecord file is truncated: bytes are missing at its end.",
        where=f"{path}, {at}",
        expected=f"{wanted:,} bytes of {part}",
        actual=f"the file ends after {found:,} of them",
        hint="Copy or write the file again; compare its size with the original's.",
    )


def too_large(where: object, size: str, max_bytes: int) -> DataError:
    """Returns the error of a record, or the like, of more bytes than the limit."""
    return DataError(
        "A record is larger than the limit.",
        where=where,
        expected=f"at most {max_bytes:,} bytes",
        actual=f"{size} bytes",
        hint="Write smaller records; the limit of a pipeline is "
        "examples.max_record_bytes in its config.",
    )


def _bad_length(path: Path, at: str, header: bytes, *, first: bool) -> DataError:
    if first:
        return DataError(
            "This file is not a TFRecord file.",
            where=path,
            expected="a record's length followed by the checksum of the length",
            actual=f"first bytes: {header.hex(' ')}",
            hint="Check the pattern; write tf.Example records with a TFRecord writer.",
        )
    return DataError(
        "A record's length does not match its checksum.",
        where=f"{path}, {at}",
        expected="a record's length followed by the checksum of the length",
        actual=f"bytes {header.hex(' ')}",
        hint="The file has been changed or damaged: copy or write it again.",
    )
