"""Images in one folder per class: the user's own, or TensorFlow's flower photos.

The records of ``images`` have ``image``, the bytes of the file, and ``label``, the
name of the class. Those of ``flowers`` are 192 x 192 JPEGs with the features of the
public flowers-jpeg-192x192 records, which add ``class``, the number of the class,
``one_hot_class``, and ``size``, height and width.
"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

from sample_data.data_set import ALL, EIGHT_ONE_ONE, DataSet, Parts, Records, Split
from sample_data.tf_example import Values, encode
from sluice.errors import DataError, UsageError

_PARTS = {"train": "train", "validation": "eval", "test": "test"}
_FLOWERS = ("daisy", "dandelion", "roses", "sunflowers", "tulips")
_FLOWERS_SIDE = 192


def read_images(path: Path, skip_bad: bool = False) -> Parts:
    """Finds images in a folder per class, or in these below train, validation and test.

    Raises:
      UsageError: the path is no folder with a folder per class.
      DataError: files in class folders are no JPEG or PNG, or are damaged, and are not
        to be left out (``skip_bad``).
    """
    if not (path / "train").is_dir():
        return {ALL: _records(path, _classes(path), skip_bad=skip_bad)}
    classes = _classes(path / "train")
    return {
        part: _records(path / name, classes, skip_bad=skip_bad)
        for name, part in _PARTS.items()
    }


def read_flowers(path: Path) -> Parts:
    """Finds the photos in the five folders of flower_photos; see ``read_images``."""
    inside = path / "flower_photos"
    root = inside if inside.is_dir() else path
    return {ALL: _records(root, _FLOWERS, _FLOWERS_SIDE)}


def read_image(path: Path, side: int | None = None) -> bytes:
    """Returns the bytes of a JPEG or PNG, which Pillow must be able to decode.

    Args:
      path: of the file.
      side: if given, PNGs and images of another size are cropped to the middle square,
        scaled to ``side`` pixels, and encoded as JPEG.

    Raises:
      DataError: it cannot be decoded.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    if not path.is_file():
        raise DataError("this is no file", where=path)
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
        flaw = "this is no JPEG or PNG"
        if not isinstance(error, UnidentifiedImageError):
            flaw += f" that can be decoded: {error}"
        raise DataError(flaw, where=path) from error
    encoded = io.BytesIO()
    scaled.save(encoded, "JPEG", quality=95)
    return encoded.getvalue()


def _records(
    root: Path,
    classes: tuple[str, ...],
    side: int | None = None,
    skip_bad: bool = False,
) -> Records:
    if _classes(root) != classes:
        raise DataError(f"the folders are not {', '.join(classes)}", where=root)
    files = [
        (path, label)
        for label, name in enumerate(classes)
        for path in sorted((root / name).iterdir())
        if not path.name.startswith(".") and path.name != "Thumbs.db"
    ]

    bad = []
    for path, _ in () if side else files:
        try:
            read_image(path)
        except DataError as error:
            bad.append((path, error.what))
    if bad and not skip_bad:
        raise DataError(
            f"{len(bad)} of {len(files)} files are no images that can be decoded",
            where=root,
            examples=[f"{path.relative_to(root)}: {why}" for path, why in bad],
            hint="correct them, or leave them out: --skip-bad",
        )
    files = [file for file in files if file[0] not in dict(bad)]

    def make(position: int) -> bytes:
        path, label = files[position]
        features: dict[str, Values] = {
            "image": [read_image(path, side) if side else path.read_bytes()],
            "label": [classes[label].encode()],
        }
        if side:
            one_hot = [float(label == number) for number in range(len(classes))]
            features |= {"class": [label], "one_hot_class": one_hot}
            features["size"] = [side, side]
        return encode(features)

    return Records(len(files), make, left_out=len(bad))


def _classes(root: Path) -> tuple[str, ...]:
    names = sorted(folder.name for folder in root.glob("[!.]*") if folder.is_dir())
    if len(names) < 2:
        raise UsageError("this has no folders of images, one per class", where=root)
    return tuple(names)


FLOWERS = DataSet(
    name="flowers",
    description="3,670 photos of 5 kinds of flowers, 192x192 JPEG, 229 MB "
    "(download.tensorflow.org)",
    licence="CC BY 2.0",
    splits=(Split("train", 12, 12), Split("eval", 2, 2), Split("test", 2, 2)),
    read=read_flowers,
    files=f"the folder flower_photos with the folders {', '.join(_FLOWERS)}",
    # https://github.com/tensorflow/datasets: url_checksums/tf_flowers.txt
    downloads={
        "http://download.tensorflow.org/example_images/flower_photos.tgz": (
            "4c54ace7911aaffe13a365c34f650e71dd5bf1be0a58b464e5a7183e3e595d9c"
        ),
    },
    class_names=_FLOWERS,
)
IMAGES = DataSet(
    name="images",
    description="JPEG and PNG files of your own, in one folder per class",
    licence="your own",
    splits=(
        *EIGHT_ONE_ONE,
        *(replace(split, part=split.name) for split in EIGHT_ONE_ONE),
    ),
    read=read_images,
    files="a folder of images per class",
)
