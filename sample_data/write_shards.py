"""Writes the shards of a data set in parallel processes, one record at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sample_data.data_set import DataSet, Records, Split, divide, shuffled_positions
from sample_data.manifest import Shard
from sluice.errors import DataError
from sluice.run_forked import run_forked
from sluice.storage import digest
from sluice.tfrecords import tfrecord

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class _Plan:
    """Name, split and records of one file."""

    name: str
    split: str
    records: Records
    positions: np.ndarray


def write_shards(
    data_set: DataSet,
    parts: Mapping[str, Records],
    directory: Path,
    *,
    seed: int,
    workers: int,
) -> tuple[Shard, ...]:
    """Writes all shards of a data set and returns their manifest entries.

    Raises:
      DataError: a split would be empty, or an image cannot be decoded.
      OSError: the directory cannot be written.
    """
    plans: list[_Plan] = []
    for part, records in parts.items():
        splits = [split for split in data_set.splits if split.part == part]
        order = shuffled_positions(len(records), seed)
        shares = divide(len(records), [split.records for split in splits])
        for split, share in zip(splits, shares, strict=True):
            if not share:
                raise _too_few(data_set, split, len(records))
            positions = order[share.start : share.stop]
            plans += _plan_shards(data_set, split, records, positions)
    return tuple(run_forked(partial(_write_shard, directory), plans, workers))


def _plan_shards(
    data_set: DataSet, split: Split, records: Records, positions: np.ndarray
) -> Iterator[_Plan]:
    """Yields a split's shards; their sizes differ by at most one record."""
    suffix = ".tfrecord.gz" if data_set.gzip else ".tfrecord"
    shards = min(split.shards, len(positions))
    size, larger = divmod(len(positions), shards)
    start = 0
    for index in range(shards):
        end = start + size + (index < larger)
        name = f"{split.name}-{index:05d}-of-{shards:05d}{suffix}"
        yield _Plan(name, split.name, records, positions[start:end])
        start = end


def _write_shard(directory: Path, plan: _Plan) -> Shard:
    path, of_records = directory / plan.name, hashlib.sha256()

    def records() -> Iterator[bytes]:
        for position in plan.positions:
            record = plan.records[int(position)]
            of_records.update(len(record).to_bytes(8, "little") + record)
            yield record

    count = tfrecord.write(path, records())
    return Shard(
        name=path.name,
        split=plan.split,
        records=count,
        size_bytes=path.stat().st_size,
        sha256=digest.of_file(path),
        records_sha256=of_records.hexdigest(),
    )


def _too_few(data_set: DataSet, split: Split, count: int) -> DataError:
    return DataError(
        f"the data set {data_set.name} has too few examples for {split.name}",
        expected=f"examples for {', '.join(item.name for item in data_set.splits)}",
        actual=f"{count:,} in the part {split.part!r} of the source",
        hint="Add examples; ten are enough.",
    )
