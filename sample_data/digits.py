"""Handwritten digits: the 1,797 images of 8x8 pixels that ship with scikit-learn.

https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits
"""

from __future__ import annotations

from typing import Any

from sample_data import tf_example
from sample_data.data_set import DataSet, Split
from sample_data.image_array import encode_png


def records() -> list[bytes]:
    """Returns one tf.Example per image.

    ``image`` is a grey PNG of 8x8 pixels, whose 17 source levels 0..16 are stretched to
    0..255; ``label`` is the digit.
    """
    from sklearn.datasets import load_digits

    source = load_digits()
    return [
        tf_example.encode(
            {"image": [encode_png(_pixels(image))], "label": [int(label)]}
        )
        for image, label in zip(source.images, source.target, strict=True)
    ]


def _pixels(image: Any) -> Any:
    """Stretches an array of the values 0..16 to 0..255."""
    return ((image.astype("int64") * 255 + 8) // 16).astype("uint8")


DIGITS = DataSet(
    name="digits",
    version=1,
    description="1,797 handwritten digits, 8x8 grey PNGs (from scikit-learn)",
    licence="CC BY 4.0 (UCI)",
    gzip=False,
    splits=(Split("train", 1200, 4), Split("eval", 297, 2), Split("test", 300, 2)),
    records=records,
)
