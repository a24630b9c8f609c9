"""TFRecord reader: splits a stream into records and reports the damaged ones.

A damaged record is yielded as a ``RecordError``, and reading continues behind it if
possible; ``sluice.tfrecords.tfrecord.read`` raises instead. The content of records is
not checked. A file without a byte has no records, as Beam and Spark write it for a
partition without any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import google_crc32c

from sluice.tfrecords.frame_encoding import (
    CRC,
    CRC_MASK,
    FRAME_BYTES,
    HEADER,
    MAX_RECORD_BYTES,
    frame,
    length_of,
)
from sluice.tfrecords.input_stream import InputStream

_MAX_KNOWN_HEADERS = 1 << 16
_NOT_TFRECORD = "not a TFRecord file, which begins with a record's length and checksum"


@dataclass(frozen=True, slots=True)
class RecordError:
    """A rejected record, or the loss of the rest of a file.

    The kinds:

    * ``length``: a length, or its checksum, is wrong; the rest of the file is lost.
    * ``too_large``: the record is longer than the config allows; it is not read.
    * ``truncated``: the file ends within a record.
    * ``checksum``: the checksum of the data is wrong.
    * ``not_example``: the bytes are no tf.Example.
    * ``not_tfrecord``: the file does not begin with a TFRecord frame.
    * ``compression``: the compressed stream is damaged or ends early.
    * ``type``: a feature has values of another type than the schema's, or of a feature
      that it does not declare than the first record's.
    * ``label``: the label is none of the classes, where statistics do not tell.
    * ``image``: an image cannot be decoded or is over a limit.
    * ``not_parquet``, ``row_group``, ``not_csv``, ``row``: a table, or a part of it,
      cannot be read.
    * ``no_partition_feature``: the feature for hashed splits is missing.

    Attributes:
        number: number of the record, from 1; 0 for the file as a whole.
        offset: of its frame in the decompressed stream, in bytes.
        reason: expected and actual, in one line.
        data: the record's bytes, as far as known; None if unknown.
        lost_bytes: bytes of the decompressed stream that cannot be read because of it;
            estimated by the ratio so far if the compressed stream is damaged.
    """

    path: str
    number: int
    offset: int
    kind: str
    reason: str
    data: bytes | None = None
    lost_bytes: int = 0


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
        digests: of the records, if the ingestion has computed them.
        columns: of lists, one per feature, as TFX decodes them, if they are known.
        values: of its conditions, ``[conditions, records]``, if there are any.
    """

    number: int
    offset: int
    buffer: bytes
    starts: list[int]
    records: list[bytes]
    digests: Sequence[bytes] = ()
    columns: Any = None
    values: Any = None

    @classmethod
    def of(
        cls, number: int, offset: int, records: list[bytes], columns: Any = None
    ) -> Batch:
        """Returns records that are in no TFRecord file, with frames."""
        frames = [frame(data) for data in records]
        starts = [0, *accumulate(map(len, frames))]
        return cls(number, offset, b"".join(frames), starts, records, (), columns)

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

    def split(self, bad: Iterable[int]) -> Iterator[Batch | int]:
        """Yields the runs of records between bad ones, and the places of these."""
        first = 0
        for index in bad:
            if index > first:
                yield self.part(first, index)
            yield index
            first = index + 1
        if first < len(self.records):
            yield self.part(first, len(self.records))

    def part(self, first: int, end: int) -> Batch:
        """Returns the records from one index to before another."""
        return Batch(
            self.number + first,
            self.offset + self.starts[first] - self.starts[0],
            self.buffer,
            self.starts[first : end + 1],
            self.records[first:end],
            self.digests[first:end],
            None if self.columns is None else self.columns[first:end],
            None if self.values is None else self.values[:, first:end],
        )


def read_frames(
    stream: InputStream, max_record_bytes: int = MAX_RECORD_BYTES
) -> Iterator[Batch | RecordError]:
    """Yields the records of a stream, in batches, and its errors, in order.

    Memory is bounded by a block of the stream and one record. A record longer than
    ``max_record_bytes`` is skipped without being held.
    """
    blocks = stream.blocks()
    lengths: dict[bytes, int] = {}
    number, offset = 1, 0
    buffer, at, need = b"", 0, HEADER.size

    def error(kind: str, reason: str, data: bytes | None, lost: int) -> RecordError:
        return RecordError(stream.path, number, offset, kind, reason, data, lost)

    while True:
        if len(buffer) - at < need:
            buffer, at = _fill(buffer[at:], need, blocks), 0
            if len(buffer) < need:
                break
        starts, records, problem, need = _cut(buffer, at, max_record_bytes, lengths)
        if records:
            yield Batch(number, offset, buffer, starts, records)
        number += len(records)
        offset += starts[-1] - at
        at = starts[-1]
        end = at + need
        if not problem:
            continue
        if problem == "length":
            for _ in blocks:
                pass
            lost = stream.content_bytes - offset + stream.lost_bytes
            if number == 1:
                yield error("not_tfrecord", _NOT_TFRECORD, None, lost)
            else:
                yield error(
                    "length", "the length is damaged: the rest is lost", None, lost
                )
            return
        if problem == "checksum":
            data = buffer[at + HEADER.size : end - CRC.size]
            yield error("checksum", "the data does not match its checksum", data, 0)
        else:
            while end > len(buffer) and (block := next(blocks, None)) is not None:
                buffer, end = block, end - len(buffer)
            reason = (
                f"a record of {need - FRAME_BYTES:,} bytes; examples.max_record_bytes "
                f"allows {max_record_bytes:,}"
            )
            if end > len(buffer):
                lost = stream.content_bytes - offset + stream.lost_bytes
                yield error(
                    "too_large", f"{reason}; the file ends within it", None, lost
                )
                return
            yield error("too_large", reason, None, need)
        number, offset = number + 1, offset + need
        at, need = end, HEADER.size
    lost, tail = len(buffer) + stream.lost_bytes, buffer[HEADER.size :] or None
    if stream.damage is not None:
        yield error("compression", stream.damage, tail, lost)
    elif buffer and number == 1 and len(buffer) < HEADER.size:
        yield error("not_tfrecord", _NOT_TFRECORD, None, lost)
    elif buffer:
        reason = f"the file ends within the record, after {lost:,} of {need:,} bytes"
        yield error("truncated", reason, tail, lost)


def _fill(buffer: bytes, need: int, blocks: Iterator[bytes]) -> bytes:
    """Returns a buffer with more blocks: ``need`` bytes, fewer if the stream ends."""
    parts, size = [buffer], len(buffer)
    while size < need and (block := next(blocks, None)) is not None:
        parts.append(block)
        size += len(block)
    return b"".join(parts)


def _cut(
    buffer: bytes, at: int, max_bytes: int, lengths: dict[bytes, int]
) -> tuple[list[int], list[bytes], str, int]:
    """Cuts a buffer from ``at`` on into whole records.

    Args:
      buffer: frames.
      at: where the first one starts.
      max_bytes: limit of a record.
      lengths: remembers the headers that were checked.

    Returns:
      Where each frame starts, and where the last one ends; the records; the problem
      there ("" if more bytes are needed, "checksum", "length" or "too_large"); and the
      bytes that the next frame takes.
    """
    starts: list[int] = [at]
    records: list[bytes] = []
    crc32c, unpack_crc, size = google_crc32c.value, CRC.unpack_from, len(buffer)
    while True:
        begin = at + 12
        header = buffer[at:begin]
        length = lengths.get(header)
        if length is None:
            if begin > size:
                return starts, records, "", HEADER.size
            length = length_of(header)
            if length is None:
                return starts, records, "length", 0
            if length > max_bytes:
                return starts, records, "too_large", length + FRAME_BYTES
            if len(lengths) >= _MAX_KNOWN_HEADERS:
                lengths.clear()
            lengths[header] = length
        end = begin + length
        if end + 4 > size:
            return starts, records, "", length + FRAME_BYTES
        data = buffer[begin:end]
        crc = crc32c(data)
        masked = ((crc >> 15 | crc << 17) + CRC_MASK) & 0xFFFFFFFF
        if masked != unpack_crc(buffer, end)[0]:
            return starts, records, "checksum", length + FRAME_BYTES
        records.append(data)
        at = end + 4
        starts.append(at)
