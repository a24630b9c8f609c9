"""MNIST and Fashion-MNIST: 70,000 grey images of 28 x 28 pixels, from their idx files.

An idx file is a header of 8 bytes for labels and 16 for images, and the values:
https://github.com/cvdfoundation/mnist
"""

from __future__ import annotations

import gzip
import zlib
from functools import partial
from pathlib import Path
from typing import Any

from sample_data.data_set import DataSet, Parts, RemoteFile, Split
from sample_data.tf_example import image_records
from sluice.errors import DataError, UsageError

SIDE = 28
# Images and labels of train, then of test.
_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def read_mnist(path: Path, label: str | None, *, classes: int = 10) -> Parts:
    """Parses the four idx files of a directory, gzip-compressed or not.

    Raises:
      UsageError: a file is missing.
      DataError: a file is damaged, or does not match the other ones.
    """
    values = [_read_idx(path, name) for name in _FILES]
    parts = {}
    for part, images, labels in (("train", *values[:2]), ("test", *values[2:])):
        if len(images) != len(labels) or labels.max(initial=0) >= classes:
            raise DataError(
                f"the labels of {part} do not fit: {len(images):,} images, "
                f"{len(labels):,} labels up to {labels.max(initial=0)}",
                where=path,
            )
        parts[part] = image_records(images, labels)
    return parts


def _read_idx(folder: Path, name: str) -> Any:
    import numpy as np

    plain, packed = folder / name, folder / f"{name}.gz"
    path = plain if plain.is_file() else packed
    if not path.is_file():
        raise UsageError(f"there is no file {name}, nor {name}.gz", where=folder)
    kind = (3, 16, (-1, SIDE, SIDE)) if "images" in name else (1, 8, (-1,))
    dimensions, header_bytes, shape = kind
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path == packed else data
        if data[:4] != bytes((0, 0, 8, dimensions)):
            raise ValueError("its first bytes are those of another file")
        values = np.frombuffer(data, np.uint8, offset=header_bytes).reshape(shape)
        if len(values) != int.from_bytes(data[4:8], "big"):
            raise ValueError("its length does not match its header")
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"this is no intact idx file: {error}",
            where=path,
            hint="copy or download it again",
        ) from error
    return values


def _declare(
    name: str,
    description: str,
    licence: str,
    class_names: tuple[str, ...],
    url: str,
    digests: tuple[str, ...],
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
        read=partial(read_mnist, classes=len(class_names)),
        files=", ".join(f"{name}[.gz]" for name in _FILES),
        downloads=tuple(
            RemoteFile(f"{url}{name}.gz", digest)
            for name, digest in zip(_FILES, digests, strict=True)
        ),
        class_names=class_names,
    )


# Digests: tensorflow_datasets/url_checksums/{mnist,fashion_mnist}.txt
MNIST = _declare(
    "mnist",
    "70,000 handwritten digits, 28x28 grey, 12 MB (storage.googleapis.com)",
    "CC BY-SA 3.0",
    tuple("0123456789"),
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    (
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
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
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    ),
)
