"""Images in one folder per class: the user's own, or TensorFlow's flower photos.

The records of ``images`` have ``image``, the bytes of the file, and ``label``, the
name of the class. Those of ``flowers`` are 192 x 192 JPEGs with the features of the
public flowers-jpeg-192x192 records, which add ``class``, the number of the class,
``one_hot_class``, and ``size``, height and width.
"""

from __future__ import annotations

import io
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from sample_data import tf_example
from sample_data.data_set import ALL, Content, DataSet, RemoteFile, Source, Split
from sluice.errors import DataError, UsageError

_SUFFIXES = (".jpg", ".jpeg", ".png")
_MAX_PIXELS = 80_000_000
_MAX_BYTES = 1 << 28
_PARTS = {"train": "train", "validation": "eval", "test": "test"}
_FLOWERS = ("daisy", "dandelion", "roses", "sunflowers", "tulips")
_FLOWERS_FOLDER = "flower_photos"
_FLOWERS_SIDE = 192
_JPEG_QUALITY = 95


@dataclass(frozen=True)
class ImageFiles:
    """Records of image files, which are read and decoded on access.

    Attributes:
      side: width and height of the JPEGs, with the features of the public flowers
        records; None for unchanged files with ``image`` and ``label``.
    """

    paths: tuple[Path, ...]
    labels: tuple[int, ...]
    class_names: tuple[str, ...]
    side: int | None

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, position: int) -> bytes:
        label = self.labels[position]
        image = read_image(self.paths[position], self.side)
        features: dict[str, tf_example.Values] = {
            "image": [image],
            "label": [self.class_names[label].encode()],
        }
        if self.side:
            classes = range(len(self.class_names))
            features["class"] = [label]
            features["one_hot_class"] = [float(label == number) for number in classes]
            features["size"] = [self.side, self.side]
        return tf_example.encode(features)


def read_images(source: Source) -> Content:
    """Finds images in a folder per class, or in these below train, validation and test.

    Raises:
      UsageError: the source is not a folder.
      DataError: it contains anything but class folders of image files.
    """
    root = _checked_folder(source.path)
    if not (root / "train").is_dir():
        return _content({ALL: root}, None)
    roots = {_PARTS.get(path.name, path.name): path for path in _entries(root)}
    if roots.keys() != set(_PARTS.values()):
        raise DataError(
            "these folders are not a complete set of splits",
            where=root,
            expected=f"the folders {', '.join(_PARTS)}; or a folder per class",
            actual=", ".join(path.name for path in roots.values()),
        )
    # The folder of train decides which classes there are.
    return _content({part: roots[part] for part in _PARTS.values()}, None)


def read_flowers(source: Source) -> Content:
    """Finds the photos in the five folders of flower_photos.

    Raises:
      UsageError: the source is not a folder.
      DataError: its folders are not the five classes, or contain other files.
    """
    root = _checked_folder(source.path)
    if (root / _FLOWERS_FOLDER).is_dir():
        root /= _FLOWERS_FOLDER
    return _content({ALL: root}, _FLOWERS)


def read_image(path: Path, side: int | None) -> bytes:
    """Decodes an image file and returns its bytes.

    Args:
      path: a JPEG or PNG.
      side: if given, PNGs and images of another size are cropped to the middle square,
        scaled to ``side`` pixels, and encoded as JPEG.

    Raises:
      DataError: the file is not a JPEG or PNG, is too large, or cannot be decoded.
      UsageError: the file cannot be read.
    """
    from PIL import Image, ImageOps

    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(
            "an image file cannot be read",
            where=path,
            actual=error.strerror or str(error),
        ) from error
    try:
        with Image.open(io.BytesIO(data), formats=("JPEG", "PNG")) as image:
            if image.width * image.height > _MAX_PIXELS or len(data) > _MAX_BYTES:
                size = f"{image.width:,} x {image.height:,} pixels"
                raise ValueError(f"{size}, {path.stat().st_size:,} bytes")
            if side is None or (image.format, *image.size) == ("JPEG", side, side):
                image.load()
                return data
            # The JPEG decoder itself scales down by 2, 4 or 8.
            image.draft("RGB", (2 * side, 2 * side))
            scaled = ImageOps.fit(image.convert("RGB"), (side, side))
    # Pillow raises all of these for damaged files.
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(
            "this file is not an image that can be decoded",
            where=path,
            expected=f"a JPEG or PNG, at most {_MAX_PIXELS:,} pixels, {_MAX_BYTES:,} "
            "bytes",
            actual=str(error).partition("<")[0].strip(),
            hint="Replace it, or remove it.",
        ) from error
    encoded = io.BytesIO()
    scaled.save(encoded, "JPEG", quality=_JPEG_QUALITY)
    return encoded.getvalue()


def _content(roots: dict[str, Path], class_names: tuple[str, ...] | None) -> Content:
    """Returns the images in a root per part, which must have the same classes."""
    parts: dict[str, ImageFiles] = {}
    side = _FLOWERS_SIDE if class_names else None
    for part, root in roots.items():
        folders = _class_folders(root, class_names)
        class_names = tuple(path.name for path in folders)
        paths: list[Path] = []
        labels: list[int] = []
        for label, folder in enumerate(folders):
            images = _image_files(folder)
            paths += images
            labels += [label] * len(images)
        parts[part] = ImageFiles(tuple(paths), tuple(labels), class_names, side)
    files = tuple(path for images in parts.values() for path in images.paths)
    return Content(parts, files, class_names or ())


def _class_folders(root: Path, class_names: tuple[str, ...] | None) -> list[Path]:
    entries = _entries(root)
    stray = [path.name for path in entries if path.suffix.lower() in _SUFFIXES]
    if stray:
        raise DataError(
            "these images are outside the class folders",
            where=root,
            examples=stray,
            expected="one folder of images per class",
        )
    folders = [path for path in entries if path.is_dir()]
    found = tuple(path.name for path in folders)
    folded = {unicodedata.normalize("NFC", name).casefold() for name in found}
    if len(folded) < len(found):
        raise DataError(
            "two class names differ in case or encoding only",
            where=root,
            examples=found,
        )
    if (class_names and found != class_names) or len(found) < 2:
        expected = ", ".join(class_names) if class_names else "at least two"
        raise DataError(
            "the folders are not the expected classes",
            where=root,
            expected=f"the folders of classes: {expected}",
            actual=", ".join(found) or "no folder",
            hint="--from DIR: the folder of the class folders; unpack archives first",
        )
    return folders


def _image_files(folder: Path) -> list[Path]:
    images = _entries(folder)
    other = [
        path.name
        for path in images
        if path.suffix.lower() not in _SUFFIXES or not path.is_file()
    ]
    if other or not images:
        raise DataError(
            "this class contains other files than images"
            if other
            else "this class is empty",
            where=folder,
            examples=other,
            expected=f"files that end in {', '.join(_SUFFIXES)}",
            hint="Move them away." if other else "Add images, or remove the folder.",
        )
    return images


def _entries(folder: Path) -> list[Path]:
    """Returns the sorted entries of a folder without hidden files such as .DS_Store."""
    entries = sorted(folder.iterdir())
    entries = [path for path in entries if path.name[0] != "."]
    for path in entries:
        if path.is_symlink() or not _is_utf8(path.name):
            raise DataError(
                "this is a symbolic link, or its name is not UTF-8",
                where=path,
                expected="folders and files",
                hint="Replace it by a copy, or remove it.",
            )
    return [path for path in entries if path.name != "Thumbs.db"]


def _is_utf8(name: str) -> bool:
    # Bytes that cannot be decoded are surrogates in a path.
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _checked_folder(path: Path) -> Path:
    if path.is_dir():
        return path
    raise UsageError(
        "this is not a folder",
        where=path,
        expected="a folder that contains a folder of images per class",
        actual="a file" if path.exists() else "no such folder",
        hint="--from DIR; unpack an archive first",
    )


FLOWERS = DataSet(
    name="flowers",
    version=1,
    description="3,670 photos of 5 kinds of flowers, 192x192 JPEG, 229 MB "
    "(download.tensorflow.org)",
    licence="CC BY 2.0",
    gzip=True,
    splits=(Split("train", 12, 12), Split("eval", 2, 2), Split("test", 2, 2)),
    read=read_flowers,
    expected_files=f"the folder {_FLOWERS_FOLDER} with the folders "
    f"{', '.join(_FLOWERS)}",
    # https://github.com/tensorflow/datasets: url_checksums/tf_flowers.txt
    downloads=(
        RemoteFile(
            "http://download.tensorflow.org/example_images/flower_photos.tgz",
            228_813_984,
            "4c54ace7911aaffe13a365c34f650e71dd5bf1be0a58b464e5a7183e3e595d9c",
            unpacked=_FLOWERS_FOLDER,
        ),
    ),
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
    expected_files="a folder of images per class",
)
