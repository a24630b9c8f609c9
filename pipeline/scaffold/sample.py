"""Samples the first records of each file, within bounds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sluice.tfrecords import tfrecord

# 40,000 records of 18 features take about 7 s on one core.
RECORDS_PER_FILE = 10_000
MAX_RECORDS = 40_000
MAX_BYTES = 256 << 20
MAX_FILES = 40


@dataclass
class Sample:
    """Reads some records of some files; ``records`` may be called more than once.

    Attributes:
      read: the files that are read, spread evenly over all.
      per_file: maximum number of records to read of each.
      max_bytes: maximum size of all records together.
      at: file and number of the record that was yielded last.
      complete: whether the last call of ``records`` has yielded every record.
    """

    files: Sequence[Path]
    per_file: int = RECORDS_PER_FILE
    max_bytes: int = MAX_BYTES
    at: str = ""
    complete: bool = False

    def __post_init__(self) -> None:
        count = min(len(self.files), MAX_FILES)
        step = len(self.files) / count
        self.read = [self.files[int(index * step)] for index in range(count)]
        self.per_file = max(1, min(self.per_file, MAX_RECORDS // count))

    def records(self) -> Iterator[bytes]:
        """Yields the records.

        Raises:
          DataError, UsageError: as ``sluice.tfrecords.tfrecord.read`` does.
        """
        self.complete = len(self.read) == len(self.files)
        # Each file gets the same share, so large records leave none of them out.
        bytes_per_file = self.max_bytes // len(self.read)
        for path in self.read:
            left = bytes_per_file
            # Compression is detected by content, as in the ingestion.
            records = tfrecord.read(path)
            for number, record in enumerate(
                itertools.islice(records, self.per_file), 1
            ):
                self.at = f"{path}, record {number:,}"
                left -= len(record)
                yield record
                if left <= 0:
                    break
            self.complete &= next(records, None) is None
