"""Declaration of a data set: where its records come from, and its splits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

# The part of a source that is not divided into train and test.
ALL = "all"


@dataclass(frozen=True)
class Split:
    """One split of a data set.

    Attributes:
      name: ``train``, ``eval`` or ``test``.
      records: number of records; a weight if the source has more or fewer.
      shards: number of files.
      part: part of the source that contains the records.
    """

    name: str
    records: int
    shards: int
    part: str = ALL


@dataclass(frozen=True)
class RemoteFile:
    """A file that can be downloaded; ``unpack`` if it is an archive to unpack."""

    url: str
    sha256: str
    unpack: bool = False


@dataclass(frozen=True)
class Records:
    """Serialized tf.Examples by their position in the source, made when they are asked.

    Attributes:
      make: returns the record at a position.
    """

    count: int
    make: Callable[[int], bytes]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, position: int) -> bytes:
        return self.make(position)


# Records by part, such as ``train`` and ``test``, or ``ALL``.
Parts = Mapping[str, Records]


@dataclass(frozen=True)
class DataSet:
    """A data set that can be written as TFRecords.

    Attributes:
      name: of the data set, its config and its schema.
      version: increased when the same seed gives other records.
      description: one line, with size and source.
      splits: together they contain every record.
      read: parses the original files at a path, given the label's column of a CSV file;
        ``path`` is None if a package contains the data set.
      files: the names of the files that ``read`` parses; empty if it takes none.
    """

    name: str
    version: int
    description: str
    licence: str
    gzip: bool
    splits: tuple[Split, ...]
    read: Callable[[Path, str | None], Parts]
    files: str = ""
    downloads: tuple[RemoteFile, ...] = ()
    class_names: tuple[str, ...] = ()


def shuffled_positions(count: int, seed: int) -> np.ndarray:
    """Returns ``range(count)`` in an order that depends on count and seed only.

    Positions are sorted by a digest of seed and position, because no random generator
    guarantees the same permutations across versions. Takes 16 bytes per record.
    """
    import numpy as np

    def key(position: int) -> int:
        digest = hashlib.sha256(f"{seed}/{position}".encode()).digest()
        return int.from_bytes(digest[:8], "big")

    keys = np.fromiter(map(key, range(count)), np.uint64, count)
    return keys.argsort(kind="stable")


def divide(count: int, weights: Sequence[int]) -> list[range]:
    """Divides ``range(count)`` into consecutive ranges in proportion to the weights."""
    total, ends, sum_ = sum(weights), [0], 0
    for weight in weights:
        sum_ += weight
        ends.append(count * sum_ // total)
    return [range(start, end) for start, end in pairwise(ends)]
