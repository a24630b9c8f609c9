"""Catalog of the data sets; writes one atomically.

A directory is written beside its target and renamed, so readers never see a part of it.
An intact directory is kept; a damaged one, or one of another version or seed, is
rewritten. Other files are never replaced.

TFRecord files have no end mark, so only ``manifest.json`` shows that records, or whole
files, are missing.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from sample_data.data_set import DataSet, Records
from sample_data.image_arrays import CIFAR10, DIGITS, FASHION_MNIST, MNIST
from sample_data.image_folder import FLOWERS, IMAGES
from sample_data.tables import DIABETES, TAXI
from sluice.config_section import Section
from sluice.errors import DataError, UsageError, did_you_mean
from sluice.storage import atomic, digest
from sluice.tfrecords import tfrecord

if TYPE_CHECKING:
    import numpy as np

DEFAULT_SEED = 17
MANIFEST_FILE = "manifest.json"

_DATA_SETS = {
    data_set.name: data_set
    for data_set in (
        *(DIGITS, TAXI, DIABETES, MNIST, FASHION_MNIST, CIFAR10, FLOWERS, IMAGES),
    )
}
_OURS = re.compile(r"manifest\.json|\w+-\d{5}-of-\d{5}\.tfrecord(\.gz)?")


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
        hint=did_you_mean(name, _DATA_SETS) or f"there are {', '.join(_DATA_SETS)}",
    )


def make(
    name: str,
    directory: str | Path,
    *,
    source: Path | None = None,
    seed: int = DEFAULT_SEED,
    skip_bad: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> Manifest:
    """Writes a data set, unless the directory already contains it.

    Args:
      name: one of ``names()``.
      directory: for the shards and the manifest; created with its parents.
      source: files of a data set that does not ship with a package. Without it, an
        intact directory is kept; otherwise the files are downloaded.
      seed: of the assignment of records to splits, and of their order.
      skip_bad: whether files that are no images, or damaged, are left out.
      report: called with lines of progress.

    Raises:
      DataError: a file of the source is damaged or invalid.
      UsageError: no such data set, its source is missing, or the directory cannot be
        written or contains other files.
    """
    data_set, target = get(name), Path(directory).resolve()
    if source and not data_set.files:
        raise UsageError(f"{name} ships with a package and is not made from files")
    if skip_bad and data_set is not IMAGES:
        raise UsageError(f"--skip-bad is for images, not for {name}")
    intact = None if source else load_intact(target)
    wanted = (name, data_set.version, seed)
    if intact and (intact.data_set, intact.version, intact.seed) == wanted:
        return intact
    try:
        _check_replaceable(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        if data_set.files and source is None:
            source = _download(data_set, target.parent / ".downloads" / name, report)
        options = {"skip_bad": True} if skip_bad else {}
        parts = data_set.read(source or target, **options)
        if left_out := sum(records.left_out for records in parts.values()):
            report(f"{name}: {left_out:,} bad or other files are left out")
        if data_set.files:
            report(f"{name}: writing the records")
        part = target.with_name(f".{target.name}.part")
        shutil.rmtree(part, ignore_errors=True)  # A killed process left it.
        part.mkdir()
        made = write_shards(data_set, parts, part, seed)
        shutil.rmtree(target, ignore_errors=True)
        part.rename(target)
    except OSError as error:
        what = f"the data set {name} cannot be made: {error.strerror or error}"
        raise UsageError(what, where=error.filename or target) from error
    return made


def _check_replaceable(target: Path) -> None:
    if not target.exists():
        return
    foreign = [x.name for x in target.iterdir() if not _OURS.fullmatch(x.name)]
    if foreign:
        raise UsageError(
            "this directory contains other files too, so it is not replaced; "
            "choose another one: --to DIR",
            where=target,
            examples=sorted(foreign),
        )


def _download(data_set: DataSet, folder: Path, report: Callable[[str], None]) -> Path:
    """Downloads the files of a data set that are not there; returns their folder."""
    if not data_set.downloads:
        raise UsageError(
            f"{data_set.name} is made from {data_set.files}: --from DIR --to DIR"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for url, sha256 in data_set.downloads.items():
        path = folder / url.rpartition("/")[2]
        if path.exists():
            continue
        report(f"{data_set.name}: downloading {url}")
        part = path.with_name(f"{path.name}.part")
        try:
            _fetch(url, part, sha256)
        except OSError as error:
            raise UsageError(
                f"{path.name} could not be downloaded: {error}; with a copy of "
                f"{data_set.files}: sluice data make {data_set.name} --from DIR",
                where=url,
            ) from error
        if path.name.endswith((".tgz", ".tar.gz")):
            shutil.unpack_archive(part, folder, "gztar")
        part.rename(path)
    return folder


def _fetch(url: str, path: Path, sha256: str) -> None:
    import urllib.request

    with urllib.request.urlopen(url, timeout=30) as answer, open(path, "wb") as copy:
        shutil.copyfileobj(answer, copy)
    if digest.of_file(path) != sha256:
        path.unlink()
        raise OSError("its SHA-256 is not the published one")


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


def write_shards(
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
