"""Data sets that are published as arrays of pixels: digits, MNIST and CIFAR-10.

Each record has ``image``, a PNG, and ``label``, an integer.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

from sample_data.data_set import ALL, DataSet, Parts, Records, Split
from sample_data.tf_example import image_records
from sluice.errors import DataError

_IDX = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
_CIFAR10_FOLDER = "cifar-10-batches-bin"
_CIFAR10_BATCHES = {
    "train": [f"data_batch_{number}.bin" for number in range(1, 6)],
    "test": ["test_batch.bin"],
}


def read_digits(path: Path) -> Parts:
    """Returns scikit-learn's digits, the 17 levels 0..16 stretched to 0..255.

    https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits
    """
    from sklearn.datasets import load_digits

    source = load_digits()
    pixels = ((source.images.astype("int64") * 255 + 8) // 16).astype("uint8")
    return {ALL: image_records(pixels, source.target)}


def read_mnist(path: Path) -> Parts:
    """Parses the four idx files of a directory, gzip-compressed or not.

    An idx file is a header, of 8 bytes for labels and 16 for images, and the values:
    https://github.com/cvdfoundation/mnist

    Raises:
      DataError: a file is damaged, or does not match the other ones.
      OSError: a file is missing.
    """
    return {
        part: _records(
            path,
            _read(path / images, (-1, 28, 28), header_bytes=16),
            _read(path / labels, (-1,), header_bytes=8),
        )
        for part, (images, labels) in _IDX.items()
    }


def read_cifar10(path: Path) -> Parts:
    """Parses the unpacked binary batches; a row is the label, red, green and blue.

    https://www.cs.toronto.edu/~kriz/cifar.html

    Raises:
      DataError: a batch is damaged.
      OSError: a batch is missing.
    """
    import numpy as np

    inside = path / _CIFAR10_FOLDER
    folder = inside if inside.is_dir() else path
    parts = {}
    for part, names in _CIFAR10_BATCHES.items():
        rows = np.concatenate([_read(folder / name, (-1, 3073)) for name in names])
        pixels = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        parts[part] = _records(folder, pixels, rows[:, 0])
    return parts


def _read(path: Path, shape: tuple[int, ...], header_bytes: int = 0) -> Any:
    """Returns the bytes of a file, or of the one with ``.gz`` added, as an array."""
    import numpy as np

    is_plain = path.is_file()
    path = path if is_plain else path.with_name(f"{path.name}.gz")
    data = path.read_bytes()
    try:
        data = data if is_plain else gzip.decompress(data)
        return np.frombuffer(data, np.uint8, offset=header_bytes).reshape(shape)
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"this file is damaged: {error}", where=path) from error


def _records(folder: Path, pixels: Any, labels: Any) -> Records:
    if len(pixels) != len(labels) or labels.max(initial=0) > 9:
        raise DataError(
            f"{len(pixels):,} images have {len(labels):,} labels up to "
            f"{labels.max(initial=0)}: a file is damaged, or that of another data set",
            where=folder,
        )
    return image_records(pixels, labels)


DIGITS = DataSet(
    name="digits",
    description="1,797 handwritten digits, 8x8 grey PNGs (from scikit-learn)",
    licence="CC BY 4.0 (UCI)",
    gzip=False,
    splits=(Split("train", 1200, 4), Split("eval", 297, 2), Split("test", 300, 2)),
    read=read_digits,
)


def _mnist(url: str, digests: tuple[str, ...], **declared: Any) -> DataSet:
    names = [name for names in _IDX.values() for name in names]
    return DataSet(
        splits=(
            Split("train", 55_000, 8, "train"),
            Split("eval", 5_000, 1, "train"),
            Split("test", 10_000, 2, "test"),
        ),
        read=read_mnist,
        files=", ".join(f"{name}[.gz]" for name in names),
        downloads={
            f"{url}{name}.gz": digest
            for name, digest in zip(names, digests, strict=True)
        },
        **declared,
    )


# Digests: tensorflow_datasets/url_checksums/{mnist,fashion_mnist}.txt
MNIST = _mnist(
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    (
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
    name="mnist",
    description="70,000 handwritten digits, 28x28 grey, 12 MB (storage.googleapis.com)",
    licence="CC BY-SA 3.0",
    class_names=tuple("0123456789"),
)
FASHION_MNIST = _mnist(
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    (
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    ),
    name="fashion-mnist",
    description="70,000 articles of clothing, 28x28 grey, 31 MB "
    "(zalandoresearch/fashion-mnist)",
    licence="MIT",
    class_names=(
        *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
        *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    ),
)
CIFAR10 = DataSet(
    name="cifar10",
    description="60,000 photos in 10 classes, 32x32 RGB, 170 MB (cs.toronto.edu)",
    licence="not stated; cite Krizhevsky 2009",
    splits=(
        Split("train", 45_000, 16, "train"),
        Split("eval", 5_000, 2, "train"),
        Split("test", 10_000, 4, "test"),
    ),
    read=read_cifar10,
    files=f"the folder {_CIFAR10_FOLDER}",
    # https://github.com/tensorflow/datasets: url_checksums/cifar10.txt
    downloads={
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz": (
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
        ),
    },
    class_names=(
        *("airplane", "automobile", "bird", "cat", "deer"),
        *("dog", "frog", "horse", "ship", "truck"),
    ),
)
