"""Shards of a data set, and the manifest beside them that reveals changes.

TFRecord files have no end mark, so only ``manifest.json`` shows that records, or whole
files, are missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from sample_data.data_set import DataSet, Records
from sluice.config_section import Section
from sluice.errors import DataError
from sluice.storage import atomic, digest
from sluice.tfrecords import tfrecord

if TYPE_CHECKING:
    import numpy as np

MANIFEST_FILE = "manifest.json"


class Shard(Section):
    """One file of records."""

    name: str
    split: str
    records: int
    sha256: str
    """Digest of the file; of a compressed file it depends on the zlib version."""


class Manifest(Section):
    """Contents of a directory."""

    data_set: str
    version: int
    """Version of the data set's records."""
    seed: int
    """Seed of the shuffle."""
    shards: tuple[Shard, ...]
    class_names: tuple[str, ...] = ()
    """Names of the labels 0, 1, ..."""

    def records(self, split: str) -> int:
        """Returns the number of records of a split."""
        return sum(shard.records for shard in self.shards if shard.split == split)


def load_intact(directory: Path) -> Manifest | None:
    """Returns the manifest of a directory whose shards are, byte by byte, as listed.

    None if there is no manifest, or if a shard is missing, damaged or not listed.
    """
    try:
        data = (directory / MANIFEST_FILE).read_bytes()
        manifest = Manifest.model_validate_json(data)
    except (OSError, ValidationError):
        return None
    listed = {directory / shard.name: shard.sha256 for shard in manifest.shards}
    if listed.keys() != {*directory.glob("*.tfrecord"), *directory.glob("*.gz")}:
        return None
    is_intact = all(digest.of_file(path) == sha256 for path, sha256 in listed.items())
    return manifest if is_intact else None


def write(
    data_set: DataSet, parts: Mapping[str, Records], folder: Path, seed: int
) -> Manifest:
    """Writes the shards of all splits, and the manifest.

    Raises:
      DataError: there are too few records to have one in every split.
    """
    manifest = Manifest(
        data_set=data_set.name,
        version=data_set.version,
        seed=seed,
        shards=tuple(
            shard
            for part, records in parts.items()
            for shard in _write_part(data_set, part, records, folder, seed)
        ),
        class_names=data_set.class_names,
    )
    atomic.write_json(folder / MANIFEST_FILE, manifest.model_dump())
    return manifest


def shuffled_positions(count: int, seed: int) -> np.ndarray:
    """Returns ``range(count)`` in an order that depends on count and seed only.

    Positions are sorted by a digest of seed and position, because no random generator
    guarantees the same permutations across versions. Takes 16 bytes per record.
    """
    import numpy as np

    def key(position: int) -> int:
        hashed = hashlib.sha256(f"{seed}/{position}".encode()).digest()
        return int.from_bytes(hashed[:8], "big")

    keys = np.fromiter(map(key, range(count)), np.uint64, count)
    return keys.argsort(kind="stable")


def divide(count: int, weights: Sequence[int]) -> list[range]:
    """Divides ``range(count)`` into consecutive ranges in proportion to the weights."""
    total = sum(weights)
    ends = [count * below // total for below in accumulate(weights, initial=0)]
    return [range(start, end) for start, end in pairwise(ends)]


def _write_part(
    data_set: DataSet, part: str, records: Records, folder: Path, seed: int
) -> Iterator[Shard]:
    """Writes the shards of a part; those of a split differ by at most one record."""
    import numpy as np

    splits = [split for split in data_set.splits if split.part == part]
    order = shuffled_positions(records.count, seed)
    shares = divide(records.count, [split.records for split in splits])
    suffix = ".tfrecord.gz" if data_set.gzip else ".tfrecord"
    for split, share in zip(splits, shares, strict=True):
        if not share:
            what = f"{records.count} records are too few for {split.name}"
            raise DataError(f"{what}; ten are enough", where=data_set.name)
        count = min(split.shards, len(share))
        shards = np.array_split(order[share.start : share.stop], count)
        for index, chosen in enumerate(shards):
            name = f"{split.name}-{index:05d}-of-{count:05d}{suffix}"
            written = tfrecord.write(folder / name, map(records.make, map(int, chosen)))
            yield Shard(
                name=name,
                split=split.name,
                records=written,
                sha256=digest.of_file(folder / name),
            )
