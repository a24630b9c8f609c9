"""Catalog of the data sets; writes one atomically.

A directory is written beside its target and renamed, so readers never see a part of it.
An intact directory is kept; a damaged one, or one of another version or seed, is
rewritten. Other files are never replaced.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from sample_data import shards
from sample_data.csv_files import CSV, DIABETES, TAXI
from sample_data.data_set import DataSet
from sample_data.image_arrays import CIFAR10, DIGITS, FASHION_MNIST, MNIST
from sample_data.image_folder import FLOWERS, IMAGES
from sluice.errors import UsageError, did_you_mean
from sluice.storage import digest

DEFAULT_SEED = 17

_DATA_SETS = {
    data_set.name: data_set
    for data_set in (
        *(DIGITS, TAXI, DIABETES, MNIST, FASHION_MNIST, CIFAR10, FLOWERS, IMAGES, CSV),
    )
}
_OURS = re.compile(r"manifest\.json|\w+-\d{5}-of-\d{5}\.tfrecord(\.gz)?")


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
    label: str | None = None,
    seed: int = DEFAULT_SEED,
    skip_bad: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> shards.Manifest:
    """Writes a data set, unless the directory already contains it.

    Args:
      name: one of ``names()``.
      directory: for the shards and the manifest; created with its parents.
      source: files of a data set that does not ship with a package. Without it, an
        intact directory is kept; otherwise the files are downloaded.
      label: the label's column of a CSV file.
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
    intact = None if source else shards.load_intact(target)
    wanted = (name, data_set.version, seed)
    if intact and (intact.data_set, intact.version, intact.seed) == wanted:
        return intact
    try:
        _check_replaceable(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        if data_set.files and source is None:
            source = _download(data_set, target.parent / ".downloads" / name, report)
        options = {"skip_bad": True} if skip_bad else {}
        parts = data_set.read(source or target, label, **options)
        if left_out := sum(records.left_out for records in parts.values()):
            report(f"{name}: {left_out:,} bad or other files are left out")
        if data_set.files:
            report(f"{name}: writing the records")
        part = target.with_name(f".{target.name}.part")
        shutil.rmtree(part, ignore_errors=True)  # A killed process left it.
        part.mkdir()
        made = shards.write(data_set, parts, part, seed)
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
