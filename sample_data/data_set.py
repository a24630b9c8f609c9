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
      records: how many records it holds.
      shards: into how many files they are divided.
    """

    name: str
    records: int
    shards: int


@dataclass(frozen=True)
class DataSet:
    """A data set that can be made on this machine.

    Attributes:
      name: its name, and that of its config and schema.
      version: raised whenever other records are made from the same seed.
      description: one line for people.
      gzip: whether the files are compressed.
      splits: all splits; together they take every record.
      records: returns all serialized tf.Examples in the order of the source.
    """

    name: str
    version: int
    description: str
    gzip: bool
    splits: tuple[Split, ...]
    records: Callable[[], list[bytes]]


def shuffled(records: Sequence[bytes], seed: int) -> list[bytes]:
    """Returns the records in an order that depends on the seed and their number alone.

    They are sorted by a digest of seed and position, because no library promises that
    its generator's permutations stay the same across versions.
    """

    def key(position: int) -> bytes:
        return hashlib.sha256(f"{seed}/{position}".encode()).digest()

    return [records[position] for position in sorted(range(len(records)), key=key)]
