"""Declaration of a data set: where its records come from, and its splits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np

# The part of a source that is not divided into train and test.
ALL = "all"


class Records(Protocol):
    """Serialized tf.Examples by their position in the source."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int, /) -> bytes: ...


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
    """A file that can be downloaded.

    Attributes:
      url: ends with the name of the file.
      unpacked: top folder of an archive that is unpacked after the download.
    """

    url: str
    size_bytes: int
    sha256: str
    unpacked: str = ""

    @property
    def name(self) -> str:
        """Name of the file on disk."""
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Source:
    """Location of the original files of a data set.

    Attributes:
      label: label column of a CSV file.
    """

    path: Path
    label: str | None = None


@dataclass(frozen=True)
class Content:
    """Contents of a source.

    Attributes:
      parts: records by part, such as ``train`` and ``test``, or ``all``.
      files: all files that the records are read from.
      class_names: of the labels 0, 1, ...
    """

    parts: Mapping[str, Records]
    files: tuple[Path, ...] = ()
    class_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class DataSet:
    """A data set that can be written as TFRecords.

    Attributes:
      name: of the data set, its config and its schema.
      version: increased when the same seed gives other records.
      description: one line, with size and source.
      splits: together they contain every record.
      records: returns all serialized tf.Examples, if a package contains the data set.
      read: parses the original files, if no package contains them.
      expected_files: names of the files that ``read`` parses.
    """

    name: str
    version: int
    description: str
    licence: str
    gzip: bool
    splits: tuple[Split, ...]
    records: Callable[[], list[bytes]] | None = None
    read: Callable[[Source], Content] | None = None
    expected_files: str = ""
    downloads: tuple[RemoteFile, ...] = ()


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
