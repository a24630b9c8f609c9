"""Samples document: the images of an ``Examples`` artifact.

A gallery by class, also as the model gets the images; formats and sizes.
"""

from __future__ import annotations

import base64
import io
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from runners.documents.examples import (
    ExampleRecord,
    as_text,
    first_value,
    read_examples,
    split_names,
)
from sluice.mlmd_items import Artifact
from sluice.privacy import Privacy
from sluice.tfrecords.parse_tf_example import values_of

MAX_RECORDS = 20_000
MAX_SECONDS = 1.0
MAX_CLASSES = 20
IMAGES_PER_CLASS = 8
MAX_SIZES = 20
# Records among which image features are looked for.
_FIRST = 100
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP")
_PIXELS = (64, 64)
_THUMBNAIL_BYTES = 3000


@dataclass
class _Feature:
    """The images of a feature.

    Attributes:
      sizes: by split, how many images there are of each format and size.
      modes: likewise of each of Pillow's modes, such as ``RGB``.
      gallery: what is shown of each class.
      firsts: the first image of each class, encoded.
    """

    sizes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    modes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    gallery: dict[Any, list[dict[str, Any]]] = field(default_factory=dict)
    firsts: dict[Any, bytes] = field(default_factory=dict)

    def add(
        self, record: ExampleRecord, label: Any, data: bytes, image: Image.Image
    ) -> None:
        size = f"{image.format} {image.width} x {image.height}"
        self.sizes[record.split][size] += 1
        self.modes[record.split][image.mode] += 1
        # Numbers of a regression are no classes.
        key = b"" if isinstance(label, float) else label
        shown = self.gallery.setdefault(key, [])
        self.firsts.setdefault(key, data)
        if len(shown) < IMAGES_PER_CLASS:
            place = {**record.place, "class": as_text(label)}
            shown.append({**place, **describe_image(image)})

    def to_dict(self, name: str, privacy: Privacy) -> dict[str, Any]:
        # Numbers by value, before text; an unknown class comes last.
        classes = sorted(self.gallery, key=lambda x: (x is None, type(x) is bytes, x))
        shown = classes[: 0 if name in privacy.sensitive else MAX_CLASSES]
        spec = privacy.images.get(name, {})
        firsts = [self.firsts[key] for key in shown]
        decoded = _decoded(firsts, spec) if spec and firsts else []
        return {
            "name": name,
            "splits": [
                {
                    "split": split,
                    "images": sum(sizes.values()),
                    "sizes": dict(sizes.most_common(MAX_SIZES)),
                    "sizes_left_out": max(0, len(sizes) - MAX_SIZES),
                    "modes": self.modes[split],
                }
                for split, sizes in self.sizes.items()
            ],
            "gallery": [
                {"class": as_text(key), "images": self.gallery[key]} for key in shown
            ],
            "decoded": [
                {**self.gallery[key][0], **image, "format": spec["resize"]}
                for key, image in zip(shown, decoded, strict=False)
            ],
            "classes_left_out": max(0, len(classes) - MAX_CLASSES),
        }


def samples(examples: Artifact, privacy: Privacy) -> dict[str, Any] | None:
    """Returns samples of the images; None if there are none.

    The first image of each class is also shown as the model gets it. Reading ends after
    ``MAX_RECORDS`` or ``MAX_SECONDS``.
    """
    if privacy.private:
        return {"records": {}, "features": []}
    records = read_examples(examples.uri, split_names(examples))
    features: dict[str, _Feature] = {}
    read: Counter[str] = Counter()
    complete, ends_at = True, time.monotonic() + MAX_SECONDS
    for count, record in enumerate(records):
        if count >= _FIRST and not features:
            break
        if count >= MAX_RECORDS or time.monotonic() > ends_at:
            complete = False
            break
        read[record.split] += 1
        values = record.features()
        label = _label(values.get(privacy.label or ""))
        for name in values if count < _FIRST else features:
            data = first_value(values.get(name))
            if image := open_image(data):
                feature = features.setdefault(name, _Feature())
                feature.add(record, label, data, image)
    if not features:
        return None
    return {
        "records": read,
        "complete": complete,
        "features": [
            feature.to_dict(name, privacy) for name, feature in features.items()
        ],
    }


def _label(feature: Any) -> Any:
    """Returns the label of an example, of several values one text; None without any."""
    found = values_of(feature)
    several = ", ".join(as_text(value) or "" for value in found).encode()
    return several if len(found) > 1 else first_value(feature)


def open_image(data: Any) -> Image.Image | None:
    """Returns an image whose header was read; None if it is none."""
    with suppress(Exception):  # Pillow raises nearly anything for a damaged image.
        return Image.open(io.BytesIO(data), formats=_FORMATS)
    return None


def describe_image(image: Image.Image) -> dict[str, Any]:
    """Returns format and size, and ``data``: a ``data:`` URI of at most 3 kB.

    It is encoded anew, so that what else was in the file, such as a position, is left
    out; None if it cannot be decoded, or not be made so small.
    """
    size = {"width": image.width, "height": image.height, "format": image.format}
    return {**size, "data": _thumbnail(image)}


def _decoded(images: Sequence[bytes], spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Describes images as the model gets them; none if one cannot be decoded."""
    import tensorflow as tf

    from pipeline.config.features import Image as ImageSpec
    from pipeline.training.input.images import decode_pixels

    specs = {"image": ImageSpec.model_validate(spec)}
    with suppress(tf.errors.InvalidArgumentError):
        data = {"image": tf.constant(images)[:, None]}
        pixels = decode_pixels(data, specs)["image"].numpy()
        if spec["channels"] == 1:
            pixels = pixels[..., 0]
        return [describe_image(Image.fromarray(x)) for x in pixels]
    return []


def _thumbnail(image: Image.Image) -> str | None:
    with suppress(Exception):
        image.draft("RGB", _PIXELS)
        small = image.convert("L" if image.mode in ("1", "L") else "RGB")
        small.thumbnail(_PIXELS)
        for kind, quality in (("png", 0), ("jpeg", 85), ("jpeg", 35)):
            encoded = io.BytesIO()
            small.save(encoded, kind, optimize=True, quality=quality)
            if encoded.tell() <= _THUMBNAIL_BYTES:
                text = base64.b64encode(encoded.getvalue()).decode()
                return f"data:image/{kind};base64,{text}"
    return None
