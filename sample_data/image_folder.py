"""Images in one folder per class: the user's own, or TensorFlow's flower photos.

The records of ``images`` have ``image``, the bytes of the file, and ``label``, the
name of the class. Those of ``flowers`` are 192 x 192 JPEGs with the features of the
public flowers-jpeg-192x192 records, which add ``class``, the number of the class,
``one_hot_class``, and ``size``, height and width.
"""

from __future__ import annotations

import io
from pathlib import Path

from sample_data.data_set import ALL, DataSet, Parts, Records, RemoteFile, Split
from sample_data.tf_example import Values, encode
from sluice.errors import DataError, UsageError

_SUFFIXES = (".jpg", ".jpeg", ".png")
_PARTS = {"train": "train", "validation": "eval", "test": "test"}
_FLOWERS = ("daisy", "dandelion", "roses", "sunflowers", "tulips")
_FLOWERS_FOLDER = "flower_photos"
_FLOWERS_SIDE = 192


def read_images(path: Path, label: str | None) -> Parts:
    """Finds images in a folder per class, or in these below train, validation and test.

    Raises:
      UsageError: the path is no folder with a folder per class.
      DataError: a class folder has other files than images, or one that is damaged.
    """
    roots = {ALL: path}
    if (path / "train").is_dir():
        roots = {part: path / folder for folder, part in _PARTS.items()}
    classes = _classes(next(iter(roots.values())))
    return {part: _records(root, classes) for part, root in roots.items()}


def read_flowers(path: Path, label: str | None) -> Parts:
    """Finds the photos in the five folders of flower_photos; see ``read_images``."""
    inside = path / _FLOWERS_FOLDER
    root = inside if inside.is_dir() else path
    return {ALL: _records(root, list(_FLOWERS), _FLOWERS_SIDE)}


def read_image(path: Path, side: int | None = None) -> bytes:
    """Returns the bytes of a JPEG or PNG, which Pillow must be able to decode.

    Args:
      path: of the file.
      side: if given, PNGs and images of another size are cropped to the middle square,
        scaled to ``side`` pixels, and encoded as JPEG.

    Raises:
      DataError: it cannot be decoded.
    """
    from PIL import Image, ImageOps

    try:
        data = path.read_bytes()
        with Image.open(io.BytesIO(data), formats=("JPEG", "PNG")) as image:
            if side is None or (image.format, *image.size) == ("JPEG", side, side):
                image.load()
                return data
            # The JPEG decoder itself scales down by 2, 4 or 8.
            image.draft("RGB", (2 * side, 2 * side))
            scaled = ImageOps.fit(image.convert("RGB"), (side, side))
    # Pillow raises all of these for damaged files.
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(
            f"this is no JPEG or PNG that can be decoded: {error}", where=path
        ) from error
    encoded = io.BytesIO()
    scaled.save(encoded, "JPEG", quality=95)
    return encoded.getvalue()


def _records(root: Path, classes: list[str], side: int | None = None) -> Records:
    if _classes(root) != classes:
        raise DataError(f"the folders are not {', '.join(classes)}", where=root)
    found = [
        (path, label)
        for label, name in enumerate(classes)
        for path in sorted((root / name).iterdir())
        if not path.name.startswith(".") and path.name != "Thumbs.db"
    ]
    other = [path for path, _ in found if path.suffix.lower() not in _SUFFIXES]
    if other:
        raise DataError(
            f"the class folders have other files than {', '.join(_SUFFIXES)}",
            where=root,
            examples=[str(path.relative_to(root)) for path in other],
        )

    def make(position: int) -> bytes:
        path, label = found[position]
        features: dict[str, Values] = {
            "image": [read_image(path, side)],
            "label": [classes[label].encode()],
        }
        if side:
            one_hot = [float(label == number) for number in range(len(classes))]
            features |= {"class": [label], "one_hot_class": one_hot}
            features["size"] = [side, side]
        return encode(features)

    return Records(len(found), make)


def _classes(root: Path) -> list[str]:
    folders = root.iterdir() if root.is_dir() else ()
    found = sorted(
        item.name for item in folders if item.is_dir() and item.name[0] != "."
    )
    if len(found) < 2:
        raise UsageError("this has no folders of images, one per class", where=root)
    return found


FLOWERS = DataSet(
    name="flowers",
    version=1,
    description="3,670 photos of 5 kinds of flowers, 192x192 JPEG, 229 MB "
    "(download.tensorflow.org)",
    licence="CC BY 2.0",
    gzip=True,
    splits=(Split("train", 12, 12), Split("eval", 2, 2), Split("test", 2, 2)),
    read=read_flowers,
    files=f"the folder {_FLOWERS_FOLDER} with the folders {', '.join(_FLOWERS)}",
    # https://github.com/tensorflow/datasets: url_checksums/tf_flowers.txt
    downloads=(
        RemoteFile(
            "http://download.tensorflow.org/example_images/flower_photos.tgz",
            "4c54ace7911aaffe13a365c34f650e71dd5bf1be0a58b464e5a7183e3e595d9c",
            unpack=True,
        ),
    ),
    class_names=_FLOWERS,
)
IMAGES = DataSet(
    name="images",
    version=1,
    description="JPEG and PNG files of your own, in one folder per class",
    licence="your own",
    gzip=True,
    splits=(
        Split("train", 8, 8, "train"),
        Split("eval", 1, 2, "eval"),
        Split("test", 1, 2, "test"),
        Split("train", 8, 8),
        Split("eval", 1, 2),
        Split("test", 1, 2),
    ),
    read=read_images,
    files="a folder of images per class",
)
