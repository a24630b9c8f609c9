"""Handwritten digits: the 1,797 images of 8x8 pixels that ship with scikit-learn.

https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits
"""

from __future__ import annotations

import io
from typing import Any

from sample_data import tf_example
from sample_data.data_set import DataSet, Split


def records() -> list[bytes]:
    """Returns one tf.Example per image.

    ``image`` is a grey PNG of 8x8 pixels, whose 17 source levels 0..16 are stretched to
    0..255; ``label`` is the digit.
    """
    from sklearn.datasets import load_digits

    source = load_digits()
    return [
        tf_example.encode({"image": [_png(image)], "label": [int(label)]})
        for image, label in zip(source.images, source.target, strict=True)
    ]


def _png(image: Any) -> bytes:
    """Encodes an array of shape (8, 8) with values 0..16 as a PNG."""
    from PIL import Image

    pixels = ((image.astype("int64") * 255 + 8) // 16).astype("uint8")
    file = io.BytesIO()
    # Stored, not compressed: the bytes then depend on no version of zlib.
    Image.fromarray(pixels).save(file, "PNG", compress_level=0)
    return file.getvalue()


DIGITS = DataSet(
    name="digits",
    version=1,
    description="1,797 handwritten digits, 8x8 grey PNGs (from scikit-learn)",
    gzip=False,
    splits=(Split("train", 1200, 4), Split("eval", 297, 2), Split("test", 300, 2)),
    records=records,
)
