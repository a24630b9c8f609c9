"""MNIST and Fashion-MNIST: 70,000 grey images of 28 x 28 pixels, from their idx files.

An idx file is a magic number (two zero bytes, the type, the number of dimensions), each
dimension in 4 bytes, big-endian, and the values:
https://github.com/cvdfoundation/mnist
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING

from sample_data.data_set import Content, DataSet, RemoteFile, Source, Split
from sample_data.image_array import ImageArray
from sluice.errors import DataError, UsageError

if TYPE_CHECKING:
    import numpy as np

SIDE = 28
_UNSIGNED_BYTE = 8
_MAX_BYTES = 1 << 30
# Images and labels of train, then of test.
_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def read_mnist(source: Source, class_names: tuple[str, ...]) -> Content:
    """Parses the four idx files of a directory.

    Raises:
      UsageError: a file is missing, or exists compressed and uncompressed.
      DataError: a file is damaged, is not MNIST, or does not match the other ones.
    """
    files = tuple(_find(source.path, name) for name in _FILES)
    parts = {
        "train": _read_part(files[0], files[1], len(class_names)),
        "test": _read_part(files[2], files[3], len(class_names)),
    }
    return Content(parts, files, class_names)


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """Returns the unsigned bytes of an idx file, gzip-compressed or not.

    Raises:
      DataError: the file has another type or number of dimensions, or its length does
        not match its header.
      OSError: the file cannot be read.
    """
    import numpy as np

    try:
        with _open(path) as file:
            header = file.read(4 + 4 * dimensions)
            magic = bytes((0, 0, _UNSIGNED_BYTE, dimensions))
            if header[:4] != magic or len(header) < 4 + 4 * dimensions:
                raise _not_idx(path, f"the first bytes {magic.hex(' ')}", header)
            shape = struct.unpack(f">{dimensions}I", header[4:])
            size = math.prod(shape)
            if not size or size > _MAX_BYTES:
                expected = f"1 to {_MAX_BYTES:,} values"
                raise _not_idx(path, expected, header, f"{size:,} values in the header")
            content = file.read(size)
            longer = bool(file.read(1))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        what = "this gzip file is truncated or corrupt"
        raise _damaged(what, path, None, str(error)) from error
    if len(content) < size or longer:
        raise _damaged(
            "the length of this idx file does not match its header",
            path,
            f"{size:,} values ({' x '.join(map(str, shape))})",
            "more" if longer else f"{len(content):,}",
        )
    return np.frombuffer(content, np.uint8).reshape(shape)


def _read_part(images: Path, labels: Path, classes: int) -> ImageArray:
    pixels, numbers = read_idx(images, 3), read_idx(labels, 1)
    if pixels.shape[1:] != (SIDE, SIDE):
        raise DataError(
            "the images have another size than those of MNIST",
            where=images,
            expected=f"{SIDE} x {SIDE} pixels",
            actual=" x ".join(map(str, pixels.shape[1:])),
        )
    if len(pixels) != len(numbers):
        raise DataError(
            "the numbers of images and labels differ",
            where=labels,
            expected=f"{len(pixels):,} labels, as many as images in {images.name}",
            actual=f"{len(numbers):,} labels",
            hint="Take both files from the same copy of the data set.",
        )
    if (beyond := numbers >= classes).any():
        position = int(beyond.argmax())
        raise DataError(
            "a label is not the number of a class",
            where=f"{labels}, label {position + 1:,}",
            expected=f"0 to {classes - 1}",
            actual=str(numbers[position]),
        )
    return ImageArray(pixels, numbers)


def _find(directory: Path, name: str) -> Path:
    """Returns the file of this name, with or without ``.gz``."""
    other = name.replace("-idx", ".idx")  # Some programs extract it with this name.
    names = [name, f"{name}.gz", other, f"{other}.gz"]
    found = [directory / name for name in names if (directory / name).is_file()]
    if len(found) == 1:
        return found[0]
    raise UsageError(
        "this file exists more than once" if found else "a file is missing",
        where=directory,
        examples=[path.name for path in found],
        expected=f"{name} or {name}.gz",
        hint="Remove all but one." if found else "--from DIR: the folder of the files",
    )


def _open(path: Path) -> gzip.GzipFile | IO[bytes]:
    with open(path, "rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if is_gzip else open(path, "rb")


def _not_idx(
    path: Path, expected: str, header: bytes, actual: str | None = None
) -> DataError:
    actual = actual or f"the first bytes {header[:4].hex(' ') or '(none)'}"
    what = "this file is not an idx file of the expected type"
    return _damaged(what, path, expected, actual)


def _damaged(what: str, path: Path, expected: str | None, actual: str) -> DataError:
    hint = "Copy or download it again."
    return DataError(what, where=path, expected=expected, actual=actual, hint=hint)


def _declare(
    name: str,
    description: str,
    licence: str,
    class_names: tuple[str, ...],
    url: str,
    files: tuple[tuple[int, str], ...],
) -> DataSet:
    return DataSet(
        name=name,
        version=1,
        description=description,
        licence=licence,
        gzip=True,
        splits=(
            Split("train", 55_000, 8, "train"),
            Split("eval", 5_000, 1, "train"),
            Split("test", 10_000, 2, "test"),
        ),
        read=lambda source: read_mnist(source, class_names),
        expected_files=", ".join(f"{name}[.gz]" for name in _FILES),
        downloads=tuple(
            RemoteFile(f"{url}{name}.gz", *file)
            for name, file in zip(_FILES, files, strict=True)
        ),
    )


# Sizes and digests: tensorflow_datasets/url_checksums/{mnist,fashion_mnist}.txt
MNIST = _declare(
    "mnist",
    "70,000 handwritten digits, 28x28 grey, 12 MB (storage.googleapis.com)",
    "CC BY-SA 3.0",
    tuple("0123456789"),
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    (
        (9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        (28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        (1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        (4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    ),
)
FASHION_MNIST = _declare(
    "fashion-mnist",
    "70,000 articles of clothing, 28x28 grey, 31 MB (zalandoresearch/fashion-mnist)",
    "MIT",
    (
        *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
        *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    ),
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    (
        (
            26_421_880,
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        ),
        (29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        (4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        (5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    ),
)
