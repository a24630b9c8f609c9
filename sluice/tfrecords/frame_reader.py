"""TFRecord reader: splits a stream into records and reports the damaged ones.

A damaged record is yielded as a ``RecordError``, and reading continues behind it if
possible; ``sluice.tfrecords.tfrecord.read`` raises instead. The content of records is
not checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import google_crc32c

from sluice.tfrecords.file_format import sniff_format
from sluice.tfrecords.frame_encoding import (
    CRC,
    CRC_MASK,
    FRAME_BYTES,
    HEADER,
    MAX_MESSAGE_BYTES,
    MAX_RECORD_BYTES,
    length_of,
    masked_crc,
)
from sluice.tfrecords.input_stream import InputStream
from sluice.tfrecords.record_error import RecordError

_MAX_KNOWN_HEADERS = 1 << 16


# A frozen dataclass takes four times as long to create.
class Record(NamedTuple):
    """A record whose framing and checksums hold.

    Attributes:
        number: its place in the file, from 1; bad records count.
        offset: where its frame starts in the decompressed stream, in bytes.
    """

    number: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one file in a row, with their frames.

    Attributes:
        number: number of the first record in the file.
        offset: where its frame starts in the decompressed stream, in bytes.
        buffer: holds the frames.
        starts: where each frame starts in the buffer, and where the last one ends.
    """

    number: int
    offset: int
    buffer: bytes
    starts: list[int]
    records: list[bytes]

    def __iter__(self) -> Iterator[Record]:
        shift = self.offset - self.starts[0]
        for index, data in enumerate(self.records):
            yield Record(self.number + index, self.starts[index] + shift, data)

    def frames(self) -> memoryview:
        """Returns the frames of all records, as they are in the file."""
        return memoryview(self.buffer)[self.starts[0] : self.starts[-1]]

    def frame(self, index: int) -> bytes:
        """Returns the frame of one record."""
        return self.buffer[self.starts[index] : self.starts[index + 1]]

    def part(self, first: int, end: int) -> Batch:
        """Returns the records from one index to before another."""
        return Batch(
            self.number + first,
            self.offset + self.starts[first] - self.starts[0],
            self.buffer,
            self.starts[first : end + 1],
            self.records[first:end],
        )


class _Cut(NamedTuple):
    """Whole records at the front of a buffer, and what comes after them.

    Attributes:
        starts: where each frame starts, and where the last one ends.
        records: their data.
        stop: "" (more bytes are needed), "checksum", "length" or "too_large".
        need: bytes from the last of ``starts`` on that the next record takes.
    """

    starts: list[int]
    records: list[bytes]
    stop: str
    need: int


def read_frames(
    stream: InputStream, max_record_bytes: int = MAX_RECORD_BYTES
) -> Iterator[Batch | RecordError]:
    """Yields the records of a stream, in batches, and its errors, in order.

    Memory is bounded by a block of the stream and one record. A record longer than
    ``max_record_bytes`` is skipped without being held.
    """
    lengths: dict[bytes, int] = {}
    number, offset = 1, 0
    pending: list[bytes] = []
    size, need = 0, HEADER.size
    blocks = stream.blocks()
    for block in blocks:
        pending.append(block)
        size += len(block)
        if size < need:
            continue
        buffer, at, stop = b"".join(pending), 0, "checksum"
        # Frees the blocks: a record may have a gigabyte.
        pending.clear()
        while stop:
            starts, records, stop, need = _cut(buffer, at, max_record_bytes, lengths)
            if records:
                yield Batch(number, offset, buffer, starts, records)
            number += len(records)
            offset += starts[-1] - at
            at = starts[-1]
            if stop == "checksum":
                yield _bad_checksum(stream.path, number, offset, buffer[at : at + need])
                number += 1
                offset += need
                at += need
            elif stop == "length":
                lost = len(buffer) - at + sum(map(len, blocks))
                header = buffer[at : at + HEADER.size]
                yield _bad_length(stream, number, offset, header, lost)
                return
            elif stop == "too_large":
                rest, missing = _pass_over(blocks, buffer[at:], need)
                length = need - FRAME_BYTES
                yield _too_large(
                    stream, number, offset, length, max_record_bytes, missing
                )
                if missing:
                    return
                number += 1
                offset += need
                buffer, at = rest, 0
        pending.append(buffer[at:])
        size = len(buffer) - at
    tail = b"".join(pending)
    pending.clear()
    yield from _end(stream, number, offset, tail)


def _pass_over(blocks: Iterator[bytes], buffer: bytes, need: int) -> tuple[bytes, int]:
    """Drops a frame; returns what comes after it, and how many bytes are missing."""
    while len(buffer) < need:
        need -= len(buffer)
        block = next(blocks, None)
        if block is None:
            return b"", need
        buffer = block
    return buffer[need:], 0


def _cut(buffer: bytes, at: int, max_bytes: int, lengths: dict[bytes, int]) -> _Cut:
    """Cuts a buffer from ``at`` on; ``lengths`` remembers headers that were checked."""
    starts: list[int] = [at]
    records: list[bytes] = []
    crc32c, unpack_crc, size = google_crc32c.value, CRC.unpack_from, len(buffer)
    while True:
        begin = at + 12
        header = buffer[at:begin]
        length = lengths.get(header)
        if length is None:
            if begin > size:
                return _Cut(starts, records, "", HEADER.size)
            length = length_of(header)
            if length is None:
                return _Cut(starts, records, "length", 0)
            if length > max_bytes:
                return _Cut(starts, records, "too_large", length + FRAME_BYTES)
            if len(lengths) >= _MAX_KNOWN_HEADERS:
                lengths.clear()
            lengths[header] = length
        end = begin + length
        if end + 4 > size:
            return _Cut(starts, records, "", length + FRAME_BYTES)
        data = buffer[begin:end]
        crc = crc32c(data)
        masked = ((crc >> 15 | crc << 17) + CRC_MASK) & 0xFFFFFFFF
        if masked != unpack_crc(buffer, end)[0]:
            return _Cut(starts, records, "checksum", length + FRAME_BYTES)
        records.append(data)
        at = end + 4
        starts.append(at)


def _end(
    stream: InputStream, number: int, offset: int, tail: bytes
) -> Iterator[RecordError]:
    """Yields the error at the end of the stream, if there is one."""
    path, damage = stream.path, stream.damage
    data = tail[HEADER.size :] or tail or None
    if not stream.size_bytes:
        yield RecordError(path, 0, 0, "empty_file", "the file has 0 bytes")
    elif (
        damage is not None and not stream.content_bytes and stream.compression == "zlib"
    ):
        # One of 500 random files begins like zlib.
        yield RecordError(
            path, 1, 0, "not_tfrecord", _NOT_TFRECORD, None, stream.size_bytes
        )
    elif damage is not None:
        lost = len(tail) + damage.lost_bytes
        yield RecordError(
            path, number, offset, "compression", damage.reason, data, lost
        )
    elif tail and number == 1 and len(tail) < HEADER.size:
        reason = f"{_NOT_TFRECORD}; it has {len(tail)} bytes, and {sniff_format(tail)}"
        yield RecordError(path, 1, 0, "not_tfrecord", reason, None, len(tail))
    elif tail:
        length = length_of(tail[: HEADER.size])
        wanted = HEADER.size if length is None else length + FRAME_BYTES
        part = "its header" if length is None else "the record and its frame"
        reason = (
            f"the file ends within the record: {len(tail):,} of the {wanted:,} bytes "
            f"of {part} are there"
        )
        if length is not None and data is not None:
            data = data[:length]
        yield RecordError(path, number, offset, "truncated", reason, data, len(tail))


_NOT_TFRECORD = "the file does not begin with a record's length and its checksum"


def _bad_checksum(path: str, number: int, offset: int, frame: bytes) -> RecordError:
    data = frame[HEADER.size : -CRC.size]
    reason = (
        f"the checksum of the data is {masked_crc(data):08x}, the file says "
        f"{CRC.unpack(frame[-CRC.size :])[0]:08x}"
    )
    return RecordError(path, number, offset, "checksum", reason, data)


def _bad_length(
    stream: InputStream, number: int, offset: int, header: bytes, lost: int
) -> RecordError:
    if stream.damage is not None:
        lost += stream.damage.lost_bytes
    if number == 1:
        reason = f"{_NOT_TFRECORD}; {sniff_format(header)}"
        return RecordError(stream.path, 1, 0, "not_tfrecord", reason, None, lost)
    reason = "the length or its checksum is damaged: the rest of the file is lost"
    return RecordError(stream.path, number, offset, "length", reason, None, lost)


def _too_large(
    stream: InputStream,
    number: int,
    offset: int,
    length: int,
    max_bytes: int,
    missing: int,
) -> RecordError:
    lost = length + FRAME_BYTES - missing
    reason = f"a record of {length:,} bytes; "
    if length > MAX_MESSAGE_BYTES:
        reason += f"a tf.Example has at most {MAX_MESSAGE_BYTES:,}"
    else:
        reason += f"examples.max_record_bytes allows {max_bytes:,}"
        reason += ": raise it to take such records"
    if missing:
        reason += f"; the file ends within it, {missing:,} bytes before its end"
        lost += stream.damage.lost_bytes if stream.damage is not None else 0
    return RecordError(stream.path, number, offset, "too_large", reason, None, lost)
