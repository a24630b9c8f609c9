"""Catalog of the data sets; writes one atomically.

A directory is written beside its target and renamed, so readers never see a part of it.
An intact directory is kept; a damaged one, or one of another version, seed or source,
is rewritten. Other files are never replaced.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from sample_data.cifar10 import CIFAR10
from sample_data.csv_file import CSV
from sample_data.data_set import ALL, Content, DataSet, Source
from sample_data.digits import DIGITS
from sample_data.download import download
from sample_data.image_folder import FLOWERS, IMAGES
from sample_data.manifest import MANIFEST_FILE, Manifest
from sample_data.mnist import FASHION_MNIST, MNIST
from sample_data.taxi import TAXI
from sample_data.write_shards import write_shards
from sluice.errors import DataError, SluiceError, UsageError
from sluice.machine_resources import usable_cores
from sluice.storage import atomic, digest

DEFAULT_SEED = 17

_DATA_SETS = {
    data_set.name: data_set
    for data_set in (DIGITS, TAXI, MNIST, FASHION_MNIST, CIFAR10, FLOWERS, IMAGES, CSV)
}
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
        f"there is no sample data set named {name!r}",
        expected=f"one of {', '.join(_DATA_SETS)}",
        hint=f"sluice data make {near[0]}",
    )


def make(
    name: str,
    directory: str | Path,
    *,
    source: Source | None = None,
    seed: int = DEFAULT_SEED,
    workers: int | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Manifest:
    """Writes a data set, unless the directory already contains it.

    Args:
      name: one of ``names()``.
      directory: for the shards and the manifest; created with its parents.
      source: files of a data set that does not ship with a package. Without it, an
        intact directory is kept; otherwise the files are downloaded.
      seed: of the assignment of records to splits, and of their order.
      workers: number of processes; None for the number of cores.
      report: called with lines of progress.

    Raises:
      DataError: a file of the source is damaged or invalid.
      UsageError: no such data set, its source is missing, the directory cannot be
        written, or it contains other files and cannot be replaced.
    """
    data_set = get(name)
    target = Path(directory).resolve()
    if data_set.read is None and source:
        raise UsageError(
            f"the data set {name} ships with a package and is not made from files",
            where=source.path,
            hint=f"sluice data make {name}",
        )
    try:
        current = _current(data_set, target, seed)
        if current and not source:
            return current
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic.lock(_beside(target, "lock")):
            # Another process may have written it meanwhile.
            current = _current(data_set, target, seed)
            if current and not source:
                return current
            content, source_digest = _content(data_set, target.parent, source, report)
            if current and current.source_sha256 == source_digest:
                return current
            if data_set.read is None:
                workers = 1  # They are small, and tests make them beside threads.
            else:
                count = sum(map(len, content.parts.values()))
                report(f"{name}: writing {count:,} records")
            with _replacing(target) as part:
                shards = write_shards(
                    data_set,
                    content.parts,
                    part,
                    seed=seed,
                    workers=workers or usable_cores(),
                )
                facts = (source_digest, content.class_names)
                made = Manifest(name, data_set.version, seed, shards, *facts)
                made.save(part)
            return made
    except OSError as error:
        raise UsageError(
            f"the sample data set {name} cannot be written",
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
            "this data set cannot be read",
            where=error.filename or directory,
            actual=error.strerror or str(error),
            hint="Check the path and its permissions.",
        ) from error
    return manifest


def _beside(target: Path, suffix: str) -> Path:
    return target.with_name(f".{target.name}.{suffix}")


def _current(data_set: DataSet, target: Path, seed: int) -> Manifest | None:
    """Returns the manifest if the directory is intact and of this data set."""
    try:
        found = verify(target)
    except DataError:
        return None
    same = (found.data_set, found.version, found.seed) == (
        data_set.name,
        data_set.version,
        seed,
    )
    return found if same and found.is_complete(data_set.splits) else None


def _content(
    data_set: DataSet,
    folder: Path,
    source: Source | None,
    report: Callable[[str], None],
) -> tuple[Content, str]:
    """Returns the contents of the source and the digest of its files."""
    if data_set.read is None:
        assert data_set.records, f"{data_set.name} has no records"
        return Content({ALL: data_set.records()}), ""
    if source is None:
        source = Source(download(data_set, folder / ".downloads", report))
    try:
        content = data_set.read(source)
        named = {
            os.path.relpath(file, source.path): digest.of_file(file)
            for file in content.files
        }
    except SluiceError as error:
        if error.hint and error.hint.startswith("--from"):
            error.hint = f"sluice data make {data_set.name} {error.hint}"
        raise
    except OSError as error:
        raise UsageError(
            f"the files of the data set {data_set.name} cannot be read",
            where=error.filename or source.path,
            expected=data_set.expected_files,
            actual=error.strerror or str(error),
            hint=f"sluice data make {data_set.name} --from DIR",
        ) from error
    return content, digest.of_bytes(repr(sorted(named.items())).encode())


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """Yields a directory that replaces the target. The caller holds the lock."""
    _check_replaceable(target)
    part, old = _beside(target, "part"), _beside(target, "old")
    for leftover in (part, old):  # Of a process that was killed.
        shutil.rmtree(leftover, ignore_errors=True)
    part.mkdir()
    try:
        yield part
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


def _check_replaceable(target: Path) -> None:
    if not target.exists():
        return
    foreign = sorted(
        path.name for path in target.iterdir() if not _OURS.fullmatch(path.name)
    )
    if foreign:
        raise UsageError(
            "this directory contains other files too, so it is not replaced",
            where=target,
            examples=foreign,
            expected="an empty directory, or one with sample data alone",
            hint="Move them away, or choose another directory.",
        )
