"""Handwritten digits: the 1,797 images of 8x8 pixels that ship with scikit-learn.

https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits
"""

from __future__ import annotations

from pathlib import Path

from sample_data.data_set import ALL, DataSet, Parts, Split
from sample_data.tf_example import image_records


def read_digits(path: Path, label: str | None) -> Parts:
    """Returns grey PNGs, the 17 source levels 0..16 stretched to 0..255."""
    from sklearn.datasets import load_digits

    source = load_digits()
    pixels = ((source.images.astype("int64") * 255 + 8) // 16).astype("uint8")
    return {ALL: image_records(pixels, source.target)}


DIGITS = DataSet(
    name="digits",
    version=1,
    description="1,797 handwritten digits, 8x8 grey PNGs (from scikit-learn)",
    licence="CC BY 4.0 (UCI)",
    gzip=False,
    splits=(Split("train", 1200, 4), Split("eval", 297, 2), Split("test", 300, 2)),
    read=read_digits,
)
