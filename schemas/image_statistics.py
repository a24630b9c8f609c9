"""Brightness and size of images, as histograms beside the statistics of their feature.

TFDV counts only the bytes of an image. A feature is taken for images if its first value
in a batch is one; of a large batch some are measured, evenly spread.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from tensorflow_metadata.proto.v0 import statistics_pb2

from schemas.data_statistics import Feature, Statistics, features_of
from sluice.tfrecords.encoded_images import image_format

if TYPE_CHECKING:
    import pyarrow

MEASURES = ("brightness", "width", "height")
# Decoding one takes 0.05 to 1 ms.
_PER_BATCH = 500
# As many as ``distances`` needs for its own.
_QUANTILES = 30
# By feature the measures of each image.
Measured = Mapping[str, Sequence[tuple[float, ...]]]


def measure(batch: pyarrow.RecordBatch) -> Measured:
    """Returns the measures of a batch's images; brightness is from 0 to 1."""
    import pyarrow

    found = {}
    chosen = range(0, batch.num_rows, max(1, batch.num_rows // _PER_BATCH))
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = getattr(column.type, "value_type", None)
        if kind not in (pyarrow.binary(), pyarrow.large_binary()):
            continue
        first = next((x[0] for x in column[:100].to_pylist() if x), b"")
        if image_format(first):
            rows = column.take(pyarrow.array(chosen)).to_pylist()
            images = [_measure(row[0]) for row in rows if row]
            found[name] = [image for image in images if image]
    return found


def _measure(data: bytes) -> tuple[float, ...] | None:
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(data))
        width, height = image.size
        image.draft("L", (64, 64))
        return float(np.asarray(image.convert("L")).mean()) / 255, width, height
    except Exception:  # Pillow raises nearly anything for a damaged image.
        return None


def add_measures(statistics: Statistics, measured: Sequence[Measured]) -> None:
    """Adds the histograms of a split's images to the statistics of their features."""
    for name, feature in features_of(statistics).items():
        rows = [row for batch in measured for row in batch.get(name, ())]
        for key, values in zip(MEASURES, zip(*rows, strict=True), strict=False):
            ends = np.quantile(values, np.linspace(0, 1, _QUANTILES + 1))
            histogram = feature.custom_stats.add(name=key).histogram
            histogram.type = statistics_pb2.Histogram.QUANTILES
            for low, high in pairwise(ends):
                count = len(values) / _QUANTILES
                histogram.buckets.add(
                    low_value=low, high_value=high, sample_count=count
                )


def image_measures(feature: Feature) -> dict[str, Feature]:
    """Returns the statistics of each measure, as of a feature of numbers."""
    found = {}
    for item in feature.custom_stats:
        if item.name in MEASURES:
            count = round(sum(bucket.sample_count for bucket in item.histogram.buckets))
            numbers = {
                "common_stats": {
                    "num_non_missing": count,
                    "tot_num_values": count,
                    "avg_num_values": 1.0,
                },
                # TFDV compares the first, whose edges ``distances`` sets.
                "histograms": [statistics_pb2.Histogram(), item.histogram],
            }
            kind = statistics_pb2.FeatureNameStatistics.FLOAT
            found[item.name] = Feature(path=feature.path, type=kind, num_stats=numbers)
    return found
