"""CIFAR-10, 60,000 RGB images of 32 x 32 pixels, from its binary archive.

https://www.cs.toronto.edu/~kriz/cifar.html
"""

from __future__ import annotations

import tarfile
import zlib
from pathlib import Path
from typing import Any

from sample_data.data_set import DataSet, Parts, RemoteFile, Split
from sample_data.tf_example import image_records
from sluice.errors import DataError, UsageError

ARCHIVE, FOLDER = "cifar-10-binary.tar.gz", "cifar-10-batches-bin"
_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
_BATCHES = {
    "train": [f"data_batch_{number}.bin" for number in range(1, 6)],
    "test": ["test_batch.bin"],
}


def read_cifar10(path: Path, label: str | None) -> Parts:
    """Parses the archive, or the folder that it unpacks to.

    Raises:
      UsageError: there is neither.
      DataError: a batch is missing or damaged.
    """
    import numpy as np

    parts = {}
    for part, names in _BATCHES.items():
        rows = np.concatenate([_rows(path, name) for name in names])
        pixels = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        parts[part] = image_records(pixels, rows[:, 0])
    return parts


def _rows(path: Path, name: str) -> Any:
    """Returns the rows of a batch: the label, then red, green and blue."""
    import numpy as np

    folders = [place for place in (path, path / FOLDER) if (place / name).is_file()]
    archive = path if path.is_file() else path / ARCHIVE
    if not folders and not archive.is_file():
        raise UsageError(
            f"there is no {name} of CIFAR-10 here, nor {ARCHIVE}", where=path
        )
    try:
        if folders:
            data = (folders[0] / name).read_bytes()
        else:
            with tarfile.open(archive) as members:
                file = members.extractfile(f"{FOLDER}/{name}")
                data = file.read() if file else b""
        rows = np.frombuffer(data, np.uint8).reshape(-1, 1 + 3 * 32 * 32)
        if not len(rows) or rows[:, 0].max() >= len(_CLASSES):
            raise ValueError("it has a label above 9, or no images")
    except (ValueError, KeyError, EOFError, tarfile.TarError, zlib.error) as error:
        raise DataError(
            f"{name} is no intact batch of CIFAR-10: {error}",
            where=folders[0] if folders else archive,
            hint="copy or download it again",
        ) from error
    return rows


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
    files=f"{ARCHIVE}, or the folder {FOLDER}",
    # https://github.com/tensorflow/datasets: url_checksums/cifar10.txt
    downloads=(
        RemoteFile(
            f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}",
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
    ),
    class_names=_CLASSES,
)
