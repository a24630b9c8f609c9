"""Distances of features between two statistics, and what chance gives.

TFDV computes the distances. Its histograms have ten buckets of the same width, each
data set's own, and interpolation between them invents distances where values are
skewed: 0.7 between two samples of taxi's ``trip_miles``. So it gets histograms with the
same edges, which are quantiles of the data that is compared with.

Few records differ from many although nothing has changed. What chance gives is what 998
of 1,000 random divisions of all values into two sets of the same sizes do not exceed
(a permutation test, which holds for few values and for many different ones alike).
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
from sluice.splits import number_of_examples

MISSING = "missing or NaN"
_L_INFINITY, _JENSEN_SHANNON = "L-infinity", "Jensen-Shannon"
_Measures = anomalies_pb2.DriftSkewInfo.Measurement
_MEASURES = {
    _Measures.L_INFTY: _L_INFINITY,
    _Measures.JENSEN_SHANNON_DIVERGENCE: _JENSEN_SHANNON,
    _Measures.NORMALIZED_ABSOLUTE_DIFFERENCE: "normalized absolute difference",
}
# Of a schema, by the type in statistics: INT, FLOAT, STRING, BYTES.
_TYPES = (schema_pb2.INT, schema_pb2.FLOAT, schema_pb2.BYTES, schema_pb2.BYTES)
# TFDV's stand-in for bytes that are no text, such as an image (its constants.py).
_BYTES = "__BYTES_VALUE__"
# Of a histogram here, each of so many quantiles of TFDV, which are estimates.
_BUCKETS, _QUANTILES = 10, 3
_FAR = 1e300
_DIVISIONS, _SHARE = 2000, 0.998
# NumPy draws from less than 1e9 values.
_MAX_VALUES = 4e8

_Feature: TypeAlias = statistics_pb2.FeatureNameStatistics


@dataclass(frozen=True)
class Distance:
    """A distance between two distributions of a feature.

    Attributes:
      feature: its name.
      measure: the kind of distance; ``missing or NaN`` is the change of their share.
      distance: from 0, the same, to 1.
      limit: of the schema, or of the section ``retrain``; None if it has none.
      chance: what chance gives at most; see ``with_chance``.
    """

    feature: str
    measure: str
    distance: float
    limit: float | None
    chance: float | None = None

    @property
    def is_by_chance(self) -> bool:
        """Whether it is above its limit, but not above what chance gives."""
        return self.chance is not None and self.distance <= self.chance


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
    known = found.string_stats.rank_histogram.buckets
    if known and known[0].label == _BYTES:
        return
    feature = schema_pb2.Feature(name=name, type=_TYPES[found.type])
    limits = feature.drift_comparator
    # Of more values only the most frequent are known: of identifiers, nearly none.
    is_cut = any(
        x.string_stats.unique > len(x.string_stats.rank_histogram.buckets) for x in pair
    )
    limit = limits.infinity_norm if is_cut else limits.jensen_shannon_divergence
    limit.threshold = 1
    current, control = _alone(*pair)
    schema = schema_pb2.Schema(feature=[feature])
    anomalies = validate(current, schema, previous_span_statistics=control)
    for item in measured(anomalies):
        yield replace(item, limit=None)


def _alone(*pair: _Feature) -> list[Statistics]:
    """Returns statistics of one feature, on common edges."""
    # TFDV measures nothing of a data set without examples.
    alone = (Statistics(datasets=[{"num_examples": 1, "features": [x]}]) for x in pair)
    return on_common_edges(*alone)


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
    # TFDV takes NaN, and buckets that end at an infinity, for different on both sides.
    ends = [
        np.clip([x[0].low_value, *(bucket.high_value for bucket in x)], -_FAR, _FAR)
        for x in quantiles
    ]
    inner = ends[-1][: -1 : max(_QUANTILES, len(ends[-1]) // _BUCKETS)]
    # What is at most the lowest value, such as many zeros, has a bucket too.
    lowest = np.nextafter(min(x[0] for x in ends), -np.inf)
    highest = max(x[-1] for x in ends)
    edges = sorted({lowest, *inner, highest})
    for item, x, buckets in zip(pair, ends, quantiles, strict=True):
        below = np.cumsum([0.0, *(bucket.sample_count for bucket in buckets)])
        counts = np.diff(np.interp(edges, x, below, left=0))
        histograms = item.num_stats.histograms
        (histogram, *_) = histograms
        del histograms[1:], histogram.buckets[:]
        for (low, high), count in zip(pairwise(edges), counts, strict=True):
            histogram.buckets.add(low_value=low, high_value=high, sample_count=count)
        high, count = np.nextafter(highest, np.inf), histogram.num_nan
        histogram.buckets.add(low_value=highest, high_value=high, sample_count=count)
        histogram.num_nan = 0


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


def sizes(current: Statistics, control: Statistics, item: Distance) -> str:
    """Returns how many examples a distance is of, and whether chance gives it."""
    numbers = map(number_of_examples, (current, control))
    text = "{:,} examples against {:,}".format(*numbers)
    chance = (
        f", where chance gives up to {item.chance:.2g}" if item.is_by_chance else ""
    )
    return text + chance


def with_chance(item: Distance, current: Statistics, control: Statistics) -> Distance:
    """Returns a distance, with what chance gives if it is not below its limit.

    Values of one example are not independent: each example counts as one draw.
    """
    is_known = item.measure in (_L_INFINITY, _JENSEN_SHANNON, MISSING)
    if item.limit is None or item.distance < item.limit or not is_known:
        return item
    found, before = map(features_of, (current, control))
    if item.measure == MISSING:
        values = np.array([number_of_examples(x) for x in (current, control)])
        missing = values * [_missing(x.get(item.feature)) for x in (found, before)]
        counts, per_example = np.stack([missing, values - missing], axis=1), 1.0
    else:
        counts, values, per_example = _counts(found[item.feature], before[item.feature])
    kept = np.rint(counts * np.minimum(1, _MAX_VALUES / values)[:, None]).astype(int)
    (size, other), pooled = kept.sum(axis=1), kept.sum(axis=0)
    if not (size and other):
        return replace(item, chance=1.0)
    drawn = np.random.default_rng(0).multivariate_hypergeometric(
        pooled, size, size=_DIVISIONS, method="marginals"
    )
    p, q = drawn / size, (pooled - drawn) / other
    largest = np.abs(p - q).max(axis=1)
    chance = np.quantile(largest, _SHARE) * math.sqrt(per_example)
    if item.measure == _JENSEN_SHANNON:
        divergence = _entropy((p + q) / 2) - (_entropy(p) + _entropy(q)) / 2
        # Values that TFDV does not list may be the same ones on both sides.
        left_out = np.maximum(0, 1 - counts.sum(axis=1) / values).max()
        chance = np.quantile(divergence, _SHARE) * per_example + 2 * left_out
    # TFDV rounds otherwise.
    return replace(item, chance=min(1.0, float(chance) + 1e-9))


def _counts(*pair: _Feature) -> tuple[np.ndarray, np.ndarray, float]:
    """Returns the number of each value, or in each bucket, and of all, by side.

    And how many values an example has, at least 1.
    """
    listed = []
    for statistics in _alone(*pair):
        (item,) = features_of(statistics).values()
        texts = item.string_stats.rank_histogram.buckets
        numbers = [x for item in item.num_stats.histograms[:1] for x in item.buckets]
        by_value = {x.label: x.sample_count for x in texts}
        listed.append(by_value or {x.low_value: x.sample_count for x in numbers})
    keys = sorted({*listed[0], *listed[1]}, key=str)
    common = [getattr(x, x.WhichOneof("stats") or "").common_stats for x in pair]
    return (
        np.array([[x.get(key, 0) for key in keys] for x in listed]),
        np.maximum(1, [x.tot_num_values for x in common]),
        max(1.0, *(x.avg_num_values for x in common)),
    )


def _entropy(p: np.ndarray) -> np.ndarray:
    return -(p * np.log2(np.where(p > 0, p, 1))).sum(axis=1)
