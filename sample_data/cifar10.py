"""Parser of CIFAR-10, 60,000 RGB images of 32 x 32 pixels: binary or Python archive.

https://www.cs.toronto.edu/~kriz/cifar.html
"""

from __future__ import annotations

import lzma
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sample_data import cifar10_pickle
from sample_data.data_set import Content, DataSet, RemoteFile, Source, Split
from sample_data.image_array import ImageArray
from sluice.errors import DataError, UsageError

if TYPE_CHECKING:
    import numpy as np

_SIDE, _CHANNELS = 32, 3
_RECORD_BYTES = 1 + _SIDE * _SIDE * _CHANNELS
# A whole batch has 31 MB.
_MAX_BATCH_BYTES = 64 << 20
_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
_TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
_TEST = ("test_batch",)
# The archive, the folder in it, and the suffix of its batches.
_FORMS = (
    ("cifar-10-binary.tar.gz", "cifar-10-batches-bin", ".bin"),
    ("cifar-10-python.tar.gz", "cifar-10-batches-py", ""),
)


def read_cifar10(source: Source) -> Content:
    """Parses an archive or its unpacked folder.

    Raises:
      UsageError: there is neither.
      DataError: a batch is missing, damaged or not a batch of CIFAR-10.
    """
    place, suffix = _find(source.path)
    is_folder = place.is_dir()
    names = [name + suffix for name in _TRAIN + _TEST]
    files = _folder_files if is_folder else _archive_files
    batches = {}
    for name, content in files(place, names):
        where = place / name
        if name in batches:
            raise _error("This batch is in the archive twice.", where)
        if len(content) > _MAX_BATCH_BYTES:
            actual = f"more than {_MAX_BATCH_BYTES:,} bytes"
            raise _error("This batch is too large.", where, actual)
        parse = parse_binary if suffix else parse_python
        batches[name] = parse(content, where)
    if missing := [name for name in names if name not in batches]:
        raise _error("Batches are missing.", place, examples=missing)
    parts = {"train": _joined(batches, _TRAIN, suffix)}
    parts["test"] = _joined(batches, _TEST, suffix)
    used = [place / name for name in names] if is_folder else [place]
    return Content(parts, tuple(used), _CLASSES)


def parse_binary(content: bytes, where: Path) -> ImageArray:
    """Parses a binary batch: per image the label, then the planes of RGB.

    Raises:
      DataError: the batch has an incomplete record or an invalid label.
    """
    import numpy as np

    if not content or len(content) % _RECORD_BYTES:
        raise _error(
            "this is not a binary batch of CIFAR-10",
            where,
            f"{len(content):,} bytes",
            f"a multiple of {_RECORD_BYTES:,} bytes",
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, _RECORD_BYTES)
    return _checked(records[:, 1:], records[:, 0], where)


def parse_python(content: bytes, where: Path) -> ImageArray:
    """Parses a pickled batch without executing code; see ``cifar10_pickle``.

    Raises:
      DataError: the content is not such a batch.
    """
    import numpy as np

    try:
        pixels, labels = cifar10_pickle.load_batch(content)
    except cifar10_pickle.NoBatchError as error:
        raise _error(
            "this is not a Python batch of CIFAR-10",
            where,
            str(error),
            "a pickled dict of an array 'data' and a list 'labels', nothing else",
        ) from error
    rows = np.frombuffer(pixels, np.uint8).reshape(len(labels), -1)
    return _checked(rows, np.array(labels, np.int64), where)


def _checked(rows: np.ndarray, labels: np.ndarray, where: Path) -> ImageArray:
    if (beyond := (labels < 0) | (labels >= len(_CLASSES))).any():
        position = int(beyond.argmax())
        raise _error(
            f"the label of image {position + 1:,} is not the number of a class",
            where,
            str(labels[position]),
            f"0 to {len(_CLASSES) - 1}",
        )
    planes = rows.reshape(-1, _CHANNELS, _SIDE, _SIDE)
    return ImageArray(planes.transpose(0, 2, 3, 1), labels)


def _joined(
    batches: dict[str, ImageArray], names: tuple[str, ...], suffix: str
) -> ImageArray:
    import numpy as np

    parts = [batches[name + suffix] for name in names]
    return ImageArray(
        np.concatenate([part.pixels for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )


def _find(path: Path) -> tuple[Path, str]:
    """Returns the archive or folder with the batches, and their suffix."""
    for archive, folder, suffix in _FORMS:
        if path.name == archive and path.is_file():
            return path, suffix
        if (path / archive).is_file():
            return path / archive, suffix
        for place in (path, path / folder):
            if (place / f"{_TEST[0]}{suffix}").is_file():
                return place, suffix
    raise UsageError(
        "there is no copy of CIFAR-10 here",
        where=path,
        expected=CIFAR10.expected_files,
        hint="--from DIR: the folder of the archive",
    )


def _folder_files(folder: Path, names: list[str]) -> Iterator[tuple[str, bytes]]:
    for name in names:
        if (folder / name).is_file():
            with open(folder / name, "rb") as file:
                yield name, file.read(_MAX_BATCH_BYTES + 1)


def _archive_files(archive: Path, names: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yields the batches of an archive without unpacking it."""
    try:
        with tarfile.open(archive, "r:*") as members:
            for member in members:
                name = Path(member.name).name
                if name not in names:
                    continue
                file = members.extractfile(member) if member.isreg() else None
                if file is None:
                    raise _error("This batch is a link.", archive / name)
                content = file.read(_MAX_BATCH_BYTES + 1)
                if len(content) < min(member.size, _MAX_BATCH_BYTES + 1):
                    raise EOFError(f"{name} is cut short")
                yield name, content
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataError(
            "this archive is truncated or corrupt",
            where=archive,
            actual=str(error),
            hint="Copy or download it again.",
        ) from error


def _error(
    what: str,
    where: Path,
    actual: str | None = None,
    expected: str | None = None,
    examples: list[str] | None = None,
) -> DataError:
    return DataError(
        what,
        where=where,
        expected=expected,
        actual=actual,
        examples=examples or (),
        hint="Copy or download CIFAR-10 again.",
    )


CIFAR10 = DataSet(
    name="cifar10",
    version=1,
    description="60,000 photos in 10 classes, 32x32 RGB, 170 MB (cs.toronto.edu)",
    licence="not stated; cite Krizhevsky 2009",
    gzip=True,
    splits=(
        Split("train", 45_000, 16, "train"),
        Split("eval", 5_000, 2, "train"),
        Split("test", 10_000, 4, "test"),
    ),
    read=read_cifar10,
    expected_files="cifar-10-binary.tar.gz or cifar-10-python.tar.gz, or one of them "
    "unpacked",
    # https://github.com/tensorflow/datasets: url_checksums/cifar10.txt
    downloads=(
        RemoteFile(
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            170_052_171,
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
    ),
)
