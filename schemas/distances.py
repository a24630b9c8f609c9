"""Distances of all features between two statistics; none of them is judged here.

TFDV computes them. Its histograms have ten buckets of the same width, each data set's
own, and interpolation between them invents distances where values are skewed: 0.7
between two samples of taxi's ``trip_miles``. So it gets histograms with the same edges,
which are quantiles of the data that is compared with, here and at the data gate.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from schemas.data_statistics import Statistics, features_of, not_finite, validate

MISSING = "missing or NaN"
_Measures = anomalies_pb2.DriftSkewInfo.Measurement
_MEASURES = {
    _Measures.L_INFTY: "L-infinity",
    _Measures.JENSEN_SHANNON_DIVERGENCE: "Jensen-Shannon",
    _Measures.NORMALIZED_ABSOLUTE_DIFFERENCE: "normalized absolute difference",
}
# Of a schema, by the type in statistics: INT, FLOAT, STRING, BYTES.
_TYPES = (schema_pb2.INT, schema_pb2.FLOAT, schema_pb2.BYTES, schema_pb2.BYTES)
# TFDV's stand-in for bytes that are no text, such as an image (its constants.py).
_BYTES = "__BYTES_VALUE__"
# Of a histogram here, each of so many quantiles of TFDV, which are estimates.
_BUCKETS, _QUANTILES = 10, 3

_Feature: TypeAlias = statistics_pb2.FeatureNameStatistics


@dataclass(frozen=True)
class Distance:
    """A distance between two distributions of a feature.

    Attributes:
      feature: its name.
      measure: the kind of distance; ``missing or NaN`` is the change of their share.
      distance: from 0, the same, to 1.
      limit: the schema's; None if it has none.
    """

    feature: str
    measure: str
    distance: float
    limit: float | None


def distances_of_all(
    current: Statistics, control: Statistics, left_out: Collection[str]
) -> Iterator[Distance]:
    """Yields the distance of each feature's values, and of its missing values.

    Args:
      current: the statistics to compare.
      control: those to compare with.
      left_out: features that are not compared.
    """
    found, before = features_of(current), features_of(control)
    for name in {**found, **before}:
        if name in left_out:
            continue
        if name in found and name in before:
            # TFDV takes 6 s for 2,000 features at once, and 0.4 s one by one.
            yield from _distances(name, found[name], before[name])
        change = abs(_missing(found.get(name)) - _missing(before.get(name)))
        if change:
            yield Distance(name, MISSING, change, None)


def _distances(name: str, *pair: _Feature) -> Iterator[Distance]:
    found, _ = pair
    text = found.string_stats
    known = text.rank_histogram.buckets
    if known and known[0].label == _BYTES:
        return
    feature = schema_pb2.Feature(name=name, type=_TYPES[found.type])
    limits = feature.drift_comparator
    # Of more values only the most frequent are known: of identifiers, nearly none.
    is_cut = text.unique > len(known)
    limit = limits.infinity_norm if is_cut else limits.jensen_shannon_divergence
    limit.threshold = 1
    # TFDV measures nothing of a data set without examples.
    current, control = on_common_edges(
        *(Statistics(datasets=[{"num_examples": 1, "features": [x]}]) for x in pair)
    )
    schema = schema_pb2.Schema(feature=[feature])
    anomalies = validate(current, schema, previous_span_statistics=control)
    for item in measured(anomalies):
        yield replace(item, limit=None)


def on_common_edges(current: Statistics, control: Statistics) -> list[Statistics]:
    """Returns copies whose histograms of numbers have the quantiles of ``control``."""
    copies = [Statistics.FromString(x.SerializeToString()) for x in (current, control)]
    found, before = map(features_of, copies)
    for name in found.keys() & before.keys():
        _share_edges(found[name], before[name])
    return copies


def _share_edges(*pair: _Feature) -> None:
    quantiles = [
        histogram.buckets
        for item in pair
        for histogram in item.num_stats.histograms
        if histogram.type == statistics_pb2.Histogram.QUANTILES and histogram.buckets
    ]
    if len(quantiles) < len(pair):
        return
    values = [quantiles[-1][0].low_value, *(x.high_value for x in quantiles[-1])]
    inner = values[: -1 : max(_QUANTILES, len(values) // _BUCKETS)]
    # What is at most the lowest value, such as many zeros, has a bucket too.
    lowest = np.nextafter(min(x[0].low_value for x in quantiles), -np.inf)
    highest = max(x[-1].high_value for x in quantiles)
    edges = sorted({lowest, *inner, highest})
    for item, buckets in zip(pair, quantiles, strict=True):
        x = [buckets[0].low_value, *(bucket.high_value for bucket in buckets)]
        below = np.cumsum([0.0, *(bucket.sample_count for bucket in buckets)])
        counts = np.diff(np.interp(edges, x, below, left=0))
        histograms = item.num_stats.histograms
        (histogram, *_) = histograms
        del histograms[1:], histogram.buckets[:]
        for (low, high), count in zip(pairwise(edges), counts, strict=True):
            histogram.buckets.add(low_value=low, high_value=high, sample_count=count)


def _missing(found: _Feature | None) -> float:
    """Returns the share of the examples without a value, or with NaN or infinity."""
    if found is None:
        return 1.0
    common = getattr(found, found.WhichOneof("stats") or "").common_stats
    share = sum(not_finite(found)) / (common.tot_num_values or 1)
    present = common.num_non_missing * (1 - share)
    return 1 - present / ((common.num_missing + common.num_non_missing) or 1)


def measured(anomalies: anomalies_pb2.Anomalies) -> Iterator[Distance]:
    """Yields the distances that TFDV has measured, of drift or skew."""
    for info in anomalies.drift_skew_info:
        name = ".".join(info.path.step)
        for item in (*info.drift_measurements, *info.skew_measurements):
            measure = _MEASURES.get(item.type, "distance")
            if math.isfinite(item.value):
                yield Distance(name, measure, item.value, item.threshold)
