"""Good records that lie one after the other in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from components.tfrecord_gen.reading.record import Record


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one file in a row, with their frames.

    Attributes:
        number: number of the first record in the file.
        offset: where its frame starts in the decompressed stream, in bytes.
        buffer: holds the frames.
        starts: where each frame starts in the buffer, and where the last one ends.
        records: their data.
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
