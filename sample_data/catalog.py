"""Catalog of the data sets; writes one atomically.

A directory is written beside its target and renamed, so readers never see a part of it.
An intact directory is kept; a damaged one, or one of another version or seed, is
rewritten. Other files are never replaced.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from sample_data.cifar10 import CIFAR10
from sample_data.csv_file import CSV
from sample_data.data_set import (
    DataSet,
    Records,
    RemoteFile,
    divide,
    shuffled_positions,
)
from sample_data.digits import DIGITS
from sample_data.image_folder import FLOWERS, IMAGES
from sample_data.manifest import MANIFEST_FILE, Manifest, Shard
from sample_data.mnist import FASHION_MNIST, MNIST
from sample_data.taxi import TAXI
from sluice.errors import DataError, UsageError, did_you_mean
from sluice.storage import digest
from sluice.tfrecords import tfrecord

DEFAULT_SEED = 17

_DATA_SETS = {
    data_set.name: data_set
    for data_set in (DIGITS, TAXI, MNIST, FASHION_MNIST, CIFAR10, FLOWERS, IMAGES, CSV)
}
_OURS = re.compile(
    rf"{re.escape(MANIFEST_FILE)}|\w+-\d{{5}}-of-\d{{5}}\.tfrecord(\.gz)?"
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
    raise UsageError(
        f"there is no sample data set named {name!r}",
        expected=f"one of {', '.join(_DATA_SETS)}",
        hint=did_you_mean(name, _DATA_SETS),
    )


def make(
    name: str,
    directory: str | Path,
    *,
    source: Path | None = None,
    label: str | None = None,
    seed: int = DEFAULT_SEED,
    report: Callable[[str], None] = lambda line: None,
) -> Manifest:
    """Writes a data set, unless the directory already contains it.

    Args:
      name: one of ``names()``.
      directory: for the shards and the manifest; created with its parents.
      source: files of a data set that does not ship with a package. Without it, an
        intact directory is kept; otherwise the files are downloaded.
      label: the label's column of a CSV file.
      seed: of the assignment of records to splits, and of their order.
      report: called with lines of progress.

    Raises:
      DataError: a file of the source is damaged or invalid.
      UsageError: no such data set, its source is missing, or the directory cannot be
        written or contains other files.
    """
    data_set, target = get(name), Path(directory).resolve()
    if source and not data_set.files:
        raise UsageError(f"{name} ships with a package and is not made from files")
    try:
        current = None if source else _current(data_set, target, seed)
        if current:
            return current
        _check_replaceable(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        if data_set.files and source is None:
            source = _download(data_set, target.parent / ".downloads" / name, report)
        parts = data_set.read(source or target, label)
        if data_set.files:
            report(f"{name}: writing {sum(map(len, parts.values())):,} records")
        part = target.with_name(f".{target.name}.part")
        shutil.rmtree(part, ignore_errors=True)  # Of a process that was killed.
        part.mkdir()
        shards = [
            shard
            for part_name, records in parts.items()
            for shard in _write(data_set, part_name, records, part, seed)
        ]
        made = Manifest(
            data_set=name,
            version=data_set.version,
            seed=seed,
            shards=tuple(shards),
            class_names=data_set.class_names,
        )
        made.save(part)
        shutil.rmtree(target, ignore_errors=True)
        part.rename(target)
    except OSError as error:
        what = f"the data set {name} cannot be written: {error.strerror or error}"
        raise UsageError(what, where=error.filename or target) from error
    return made


def verify(directory: str | Path) -> Manifest:
    """Returns the manifest of a directory, after comparing every byte.

    Raises:
      DataError: the manifest or a file is missing, damaged or unexpected.
    """
    manifest = Manifest.load(Path(directory))
    manifest.check(Path(directory))
    return manifest


def _current(data_set: DataSet, target: Path, seed: int) -> Manifest | None:
    """Returns the manifest if the directory is intact and of this data set."""
    try:
        found = verify(target)
    except DataError:
        return None
    made = (data_set.name, data_set.version, seed)
    return found if (found.data_set, found.version, found.seed) == made else None


def _check_replaceable(target: Path) -> None:
    if not target.exists():
        return
    foreign = [x.name for x in target.iterdir() if not _OURS.fullmatch(x.name)]
    if foreign:
        raise UsageError(
            "this directory contains other files too, so it is not replaced",
            where=target,
            examples=sorted(foreign),
            hint="move them away, or choose another directory: --to DIR",
        )


def _download(data_set: DataSet, folder: Path, report: Callable[[str], None]) -> Path:
    """Downloads the files of a data set that are not there; returns their folder."""
    if not data_set.downloads:
        raise UsageError(
            f"{data_set.name} is made from files of your own: {data_set.files}",
            hint=f"sluice data make {data_set.name} --from DIR --to DIR",
        )
    folder.mkdir(parents=True, exist_ok=True)
    for file in data_set.downloads:
        path = folder / file.url.rpartition("/")[2]
        if not path.exists():
            report(f"{data_set.name}: downloading {file.url}")
            _fetch(data_set, file, path)
        if file.unpack:
            shutil.unpack_archive(path, folder)
    return folder


def _fetch(data_set: DataSet, file: RemoteFile, path: Path) -> None:
    import requests

    part = path.with_name(f"{path.name}.part")
    try:
        # No compression in transit, because the digest is that of the file.
        headers = {"Accept-Encoding": "identity"}
        with requests.get(file.url, headers=headers, stream=True, timeout=30) as answer:
            answer.raise_for_status()
            with open(part, "wb") as copy:
                for chunk in answer.iter_content(1 << 20):
                    copy.write(chunk)
        if digest.of_file(part) != file.sha256:
            raise requests.RequestException("its SHA-256 is not the published one")
    except requests.RequestException as error:
        part.unlink(missing_ok=True)
        raise UsageError(
            f"{path.name} of {data_set.name} could not be downloaded: {error}",
            where=file.url,
            hint=f"download {data_set.files} elsewhere, then: "
            f"sluice data make {data_set.name} --from DIR",
        ) from error
    part.rename(path)


def _write(
    data_set: DataSet, part: str, records: Records, folder: Path, seed: int
) -> Iterator[Shard]:
    """Writes the shards of a part; those of a split differ by at most one record."""
    import numpy as np

    splits = [split for split in data_set.splits if split.part == part]
    order = shuffled_positions(len(records), seed)
    shares = divide(len(records), [split.records for split in splits])
    suffix = ".tfrecord.gz" if data_set.gzip else ".tfrecord"
    for split, share in zip(splits, shares, strict=True):
        if not share:
            what = (
                f"{len(records)} records are too few for {split.name}; ten are enough"
            )
            raise DataError(what, where=data_set.name)
        count = min(split.shards, len(share))
        shards = np.array_split(order[share.start : share.stop], count)
        for index, chosen in enumerate(shards):
            name = f"{split.name}-{index:05d}-of-{count:05d}{suffix}"
            yield _write_shard(folder / name, split.name, records, map(int, chosen))


def _write_shard(
    path: Path, split: str, records: Records, positions: Iterator[int]
) -> Shard:
    of_records = hashlib.sha256()

    def chosen() -> Iterator[bytes]:
        for position in positions:
            record = records[position]
            of_records.update(len(record).to_bytes(8, "little") + record)
            yield record

    count = tfrecord.write(path, chosen())
    return Shard(
        name=path.name,
        split=split,
        records=count,
        size_bytes=path.stat().st_size,
        sha256=digest.of_file(path),
        records_sha256=of_records.hexdigest(),
    )
