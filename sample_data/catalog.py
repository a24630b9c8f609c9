"""Catalog of the sample data sets; writes one atomically.

A directory is written beside its target and renamed, so readers never see a part of it.
An intact directory is kept; a damaged one, or one of another version or seed, is
rewritten. Other files are never replaced.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from sample_data.data_set import DataSet, Split, shuffled
from sample_data.digits import DIGITS
from sample_data.manifest import MANIFEST_FILE, Manifest, Shard
from sample_data.taxi import TAXI
from sluice.errors import DataError, UsageError
from sluice.storage import atomic, digest
from sluice.tfrecords import tfrecord

DEFAULT_SEED = 17

_DATA_SETS = {data_set.name: data_set for data_set in (DIGITS, TAXI)}
_OURS = re.compile(
    rf"\..*|{re.escape(MANIFEST_FILE)}|\w+-\d{{5}}-of-\d{{5}}\.tfrecord(\.gz)?"
)


def names() -> list[str]:
    """Returns the names of the data sets."""
    return list(_DATA_SETS)


def get(name: str) -> DataSet:
    """Returns a data set's declaration.

    Raises:
      UsageError: there is none of this name.
    """
    if name in _DATA_SETS:
        return _DATA_SETS[name]
    near = difflib.get_close_matches(name, _DATA_SETS, n=1, cutoff=0)
    raise UsageError(
        f"There is no sample data set named {name!r}.",
        expected=f"one of {', '.join(_DATA_SETS)}",
        hint=f"sluice data make {near[0]}",
    )


def make(name: str, directory: str | Path, *, seed: int = DEFAULT_SEED) -> Manifest:
    """Writes a data set, unless the directory already contains it.

    Args:
      name: one of ``names()``.
      directory: for the shards and the manifest; created with its parents.
      seed: of the assignment of records to splits, and of their order.

    Returns:
      The manifest of the directory.

    Raises:
      UsageError: no such data set, its source package is not installed, the directory
        cannot be written, or it contains other files and cannot be replaced.
    """
    data_set = get(name)
    target = Path(directory).resolve()
    try:
        current = _current(data_set, target, seed)
        if current:
            return current
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic.lock(_beside(target, "lock")):
            # Another process may have written it meanwhile.
            current = _current(data_set, target, seed)
            return current or _replace(data_set, target, seed)
    except OSError as error:
        raise UsageError(
            f"The sample data set {name} cannot be written.",
            where=target,
            expected="a directory that can be created or replaced",
            actual=error.strerror or str(error),
            hint="Check the path, its permissions and the free space.",
        ) from error


def verify(directory: str | Path) -> Manifest:
    """Returns the manifest of a directory, after comparing every byte.

    Raises:
      DataError: the manifest or a file is missing, damaged or unexpected.
      UsageError: the directory cannot be read.
    """
    directory = Path(directory)
    try:
        manifest = Manifest.load(directory)
        manifest.check(directory)
    except OSError as error:
        raise UsageError(
            "This data set cannot be read.",
            where=error.filename or directory,
            actual=error.strerror or str(error),
            hint="Check the path and its permissions.",
        ) from error
    return manifest


def _beside(target: Path, suffix: str) -> Path:
    return target.with_name(f".{target.name}.{suffix}")


def _current(data_set: DataSet, target: Path, seed: int) -> Manifest | None:
    """Returns the manifest if the directory already contains the data set."""
    try:
        found = verify(target)
    except DataError:
        return None
    same = (found.data_set, found.version, found.seed) == (
        data_set.name,
        data_set.version,
        seed,
    )
    whole = all(found.records(split.name) == split.records for split in data_set.splits)
    return found if same and whole else None


def _replace(data_set: DataSet, target: Path, seed: int) -> Manifest:
    """Rewrites the directory. The caller holds the lock."""
    _check_replaceable(target)
    part, old = _beside(target, "part"), _beside(target, "old")
    for leftover in (part, old):  # Of a process that was killed.
        shutil.rmtree(leftover, ignore_errors=True)
    part.mkdir()
    try:
        manifest = _write(data_set, part, seed)
        atomic.sync_directory(part)
        if target.exists():
            target.rename(old)
        part.rename(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        if old.exists():
            old.rename(target)
        raise
    atomic.sync_directory(target.parent)
    shutil.rmtree(old, ignore_errors=True)
    return manifest


def _check_replaceable(target: Path) -> None:
    if not target.exists():
        return
    foreign = sorted(
        path.name for path in target.iterdir() if not _OURS.fullmatch(path.name)
    )
    if foreign:
        raise UsageError(
            "This directory contains other files too, so it is not replaced.",
            where=target,
            examples=foreign,
            expected="an empty directory, or one with sample data alone",
            hint="Move them away, or choose another directory.",
        )


def _write(data_set: DataSet, directory: Path, seed: int) -> Manifest:
    records = iter(shuffled(data_set.records(), seed))
    shards = [
        _write_shard(data_set, directory, split, index, records)
        for split in data_set.splits
        for index in range(split.shards)
    ]
    if next(records, None) is not None:
        raise AssertionError(f"the splits of {data_set.name} do not take all records")
    manifest = Manifest(data_set.name, data_set.version, seed, tuple(shards))
    manifest.save(directory)
    return manifest


def _write_shard(
    data_set: DataSet,
    directory: Path,
    split: Split,
    index: int,
    records: Iterator[bytes],
) -> Shard:
    """Writes the next records as one shard; a split's shards differ by at most one."""
    size, larger = divmod(split.records, split.shards)
    taken = [next(records) for _ in range(size + (index < larger))]
    suffix = ".tfrecord.gz" if data_set.gzip else ".tfrecord"
    path = directory / f"{split.name}-{index:05d}-of-{split.shards:05d}{suffix}"
    return Shard(
        name=path.name,
        split=split.name,
        records=tfrecord.write(path, taken),
        size_bytes=path.stat().st_size,
        sha256=digest.of_file(path),
        records_sha256=_digest_of_records(taken),
    )


def _digest_of_records(records: Iterable[bytes]) -> str:
    result = hashlib.sha256()
    for record in records:
        result.update(len(record).to_bytes(8, "little") + record)
    return result.hexdigest()
