"""Encodes tf.Examples without TensorFlow, whose import takes seconds.

Features are ordered by name, so equal features are equal bytes. There are no empty
features: a missing value is a missing feature.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from sample_data.data_set import Records
from sluice.tfrecords.parse_tf_example import parse

Values = Sequence[int] | Sequence[float] | Sequence[bytes]

_LISTS: dict[type, str] = {int: "int64_list", float: "float_list", bytes: "bytes_list"}


def encode(features: Mapping[str, Values]) -> bytes:
    """Returns the serialized tf.Example.

    Args:
      features: per feature name its values, one or more, all int, all float or all
        bytes. Floats are stored in 32 bits.
    """
    example = parse(b"")
    example.features.SetInParent()
    for name, values in features.items():
        feature = example.features.feature[name]
        getattr(feature, _LISTS[type(values[0])]).value.extend(values)
    return example.SerializeToString(deterministic=True)


def encode_png(pixels: Any) -> bytes:
    """Encodes an array of uint8 pixels, ``[height, width]`` or ``[height, width, 3]``.

    Uncompressed, so that the bytes do not depend on the zlib version.
    """
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=0)
    return file.getvalue()


def image_records(pixels: Any, labels: Any) -> Records:
    """Returns records with ``image``, a PNG, and ``label``, an integer."""

    def make(position: int) -> bytes:
        image, label = encode_png(pixels[position]), int(labels[position])
        return encode({"image": [image], "label": [label]})

    return Records(len(labels), make)
