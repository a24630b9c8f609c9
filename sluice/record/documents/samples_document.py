"""Samples document: the images of an ``Examples`` artifact.

Reading is bounded in records and in time, which the document says. The same records are
read each time, as far as the time suffices.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from sluice.record.documents.duplicate_images import Duplicates, Place, describe_groups
from sluice.record.documents.example_records import (
    ExampleReader,
    ExampleRecord,
    class_name,
    first_value,
    split_names,
)
from sluice.record.documents.image_sample import (
    ImageSample,
    describe_image,
    is_image,
    read_image,
)
from sluice.record.documents.privacy import Privacy

MAX_DECODED = 2000
MAX_HASHED = 20_000
MAX_SECONDS = 1.0
MAX_FEATURES = 5
MAX_CLASSES = 20
IMAGES_PER_CLASS = 8
MAX_SIZES = 20
# Shown where the classes are unknown.
_IMAGES_OF_NO_CLASS = 24
# Records among which image features are looked for.
_FIRST = 100
# Encoded images that are kept to be shown among the duplicates.
_KEPT_BYTES = 32 << 20
_BRIGHTNESS_EDGES = [*range(0, 257, 16)]
_LIMITS = {
    "records": MAX_DECODED,
    "hashed_records": MAX_HASHED,
    "seconds": MAX_SECONDS,
    "images_per_class": IMAGES_PER_CLASS,
    "classes": MAX_CLASSES,
}


@dataclass
class _SplitImages:
    """Counts of the images of one feature in one split."""

    images: int = 0
    undecodable: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    channels: Counter[int] = field(default_factory=Counter)
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    lengths: list[int] = field(default_factory=list)
    brightness: list[int] = field(default_factory=lambda: [0] * 16)

    def add(self, data: bytes, sample: ImageSample) -> None:
        self.images += 1
        self.formats[sample.header.format] += 1
        self.channels[sample.header.channels] += 1
        self.sizes[sample.header.width, sample.header.height] += 1
        self.lengths.append(len(data))
        self.brightness[int(sample.brightness) // 16] += 1

    def to_dict(self, split: str) -> dict[str, Any]:
        sizes, lengths = self.sizes.most_common(MAX_SIZES), self.lengths
        size_bytes = None
        if lengths:
            middle = median(lengths)
            size_bytes = {"min": min(lengths), "median": middle, "max": max(lengths)}
        return {
            "split": split,
            "images": self.images,
            "undecodable": self.undecodable,
            "formats": dict(self.formats),
            "channels": {str(key): n for key, n in sorted(self.channels.items())},
            "sizes": [
                {"width": width, "height": height, "count": count}
                for (width, height), count in sizes
            ],
            "sizes_left_out": len(self.sizes) - len(sizes),
            "bytes": size_bytes,
            "brightness": {"edges": _BRIGHTNESS_EDGES, "counts": self.brightness},
        }


@dataclass
class _ImageFeature:
    """What was seen of one image feature.

    Attributes:
      contents: encoded images by digest, as many as fit into ``_KEPT_BYTES``.
    """

    name: str
    splits: dict[str, _SplitImages]
    duplicates: Duplicates = field(default_factory=Duplicates)
    gallery: dict[Any, list[tuple[Place, bytes]]] = field(default_factory=dict)
    contents: dict[bytes, bytes] = field(default_factory=dict)
    kept_bytes: int = 0

    def add(self, place: Place, data: bytes, *, decode: bool) -> None:
        digest = place.digest
        is_new = self.duplicates.add(place)
        if (decode or not is_new) and self.kept_bytes + len(data) <= _KEPT_BYTES:
            self.kept_bytes += 0 if digest in self.contents else len(data)
            self.contents[digest] = data
        if not decode:
            return
        sample = read_image(data)
        split = self.splits[place.split]
        if sample is None:
            split.undecodable += 1
            return
        split.add(data, sample)
        if is_new:
            self.duplicates.add_sample(place, sample)
        shown = self.gallery.setdefault(place.label, [])
        most = _IMAGES_OF_NO_CLASS if place.label is None else IMAGES_PER_CLASS
        if len(shown) < most:
            shown.append((place, data))

    def to_dict(self, *, is_sensitive: bool) -> dict[str, Any]:
        classes = sorted(self.gallery, key=_class_order)
        shown = [] if is_sensitive else classes[:MAX_CLASSES]
        describe = None if is_sensitive else self._describe
        exact = [(None, group) for group in self.duplicates.exact()]
        compared = sum(map(len, self.duplicates.places.values()))
        near = self.duplicates.near()
        return {
            "name": self.name,
            "sensitive": is_sensitive,
            "splits": [item.to_dict(split) for split, item in self.splits.items()],
            "gallery": [
                {
                    "class": class_name(key),
                    "images": [_image(*image) for image in self.gallery[key]],
                }
                for key in shown
            ],
            "classes_left_out": max(0, len(classes) - MAX_CLASSES),
            "duplicates": {
                "exact": describe_groups(exact, compared, describe),
                "near": describe_groups(near, self.duplicates.compared(), describe),
            },
        }

    def _describe(self, place: Place) -> dict[str, Any]:
        return _image(place, self.contents.get(place.digest))


def samples_document(
    uri: str, properties: Mapping[str, Any], privacy: Privacy
) -> dict[str, Any] | None:
    """Returns samples of the images of each split; None if there are no images.

    Raises:
      OSError: the artifact cannot be listed.
    """
    if privacy.private:
        return {"private": True, "limits": _LIMITS, "splits": [], "features": []}
    reader = ExampleReader(uri, split_names(properties))
    images = _Images(reader.splits, privacy.label)
    ends_at = time.monotonic() + MAX_SECONDS
    for record in reader:
        images.add(record)
        if images.read[record.split] == MAX_HASHED:
            reader.stop(record.split)
        if images.are_none() or time.monotonic() > ends_at:
            break
    if not images.found:
        return None
    return {
        "private": False,
        "limits": _LIMITS,
        "splits": [
            {
                "split": split,
                "records": images.read[split],
                "complete": split not in reader.incomplete,
                "decoded": images.decoded[split],
            }
            for split in reader.splits
        ],
        "features": [
            feature.to_dict(is_sensitive=name in privacy.sensitive)
            for name, feature in images.found.items()
        ],
    }


class _Images:
    """The images of all records that were read.

    Attributes:
      read: number of records by split.
      decoded: of how many of them the images were decoded.
      found: the image features.
    """

    def __init__(self, splits: Collection[str], label: str | None) -> None:
        self._splits = splits
        self._label = label
        self.read: Counter[str] = Counter()
        self.decoded: Counter[str] = Counter()
        self.found: dict[str, _ImageFeature] = {}

    def are_none(self) -> bool:
        """Whether enough records were read to say that there are no images."""
        return not self.found and sum(self.read.values()) >= _FIRST

    def add(self, record: ExampleRecord) -> None:
        split, features = record.split, record.features()
        self.read[split] += 1
        if features is None:
            return
        if sum(self.read.values()) <= _FIRST:
            self._find(features)
        decode = self.decoded[split] < MAX_DECODED
        self.decoded[split] += decode
        label = first_value(features.get(self._label)) if self._label else None
        for name, feature in self.found.items():
            data = first_value(features.get(name))
            if isinstance(data, bytes):
                digest = hashlib.sha256(data).digest()
                place = Place(split, record.file, record.number, label, digest)
                feature.add(place, data, decode=decode)

    def _find(self, features: Mapping[str, Any]) -> None:
        for name, feature in features.items():
            new = name not in self.found and len(self.found) < MAX_FEATURES
            if new and is_image(first_value(feature)):
                splits = {split: _SplitImages() for split in self._splits}
                self.found[name] = _ImageFeature(name, splits)


def _class_order(value: Any) -> tuple[bool, bool, int, str]:
    """Orders integers by value, before text; an unknown class comes last."""
    number = value if isinstance(value, int) else 0
    return value is None, not isinstance(value, int), number, class_name(value) or ""


def _image(place: Place, data: bytes | None) -> dict[str, Any]:
    return {
        "split": place.split,
        "file": place.file,
        "record": place.record,
        "class": class_name(place.label),
        **describe_image(data),
    }
