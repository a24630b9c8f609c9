"""Declaration of a sample data set: its records and splits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Split:
    """One split of a data set.

    Attributes:
      name: ``train``, ``eval`` or ``test``.
      records: number of records.
      shards: number of files.
    """

    name: str
    records: int
    shards: int


@dataclass(frozen=True)
class DataSet:
    """A data set that can be written without a network.

    Attributes:
      name: of the data set, its config and its schema.
      version: increased when the same seed gives other records.
      description: one line.
      gzip: whether the files are compressed.
      splits: together they contain every record.
      records: returns all serialized tf.Examples in the order of the source.
    """

    name: str
    version: int
    description: str
    gzip: bool
    splits: tuple[Split, ...]
    records: Callable[[], list[bytes]]


def shuffled(records: Sequence[bytes], seed: int) -> list[bytes]:
    """Returns the records in an order that depends on the seed and their number only.

    They are sorted by a digest of seed and position, because no random generator
    guarantees the same permutations across versions.
    """

    def key(position: int) -> bytes:
        return hashlib.sha256(f"{seed}/{position}".encode()).digest()

    return [records[position] for position in sorted(range(len(records)), key=key)]
