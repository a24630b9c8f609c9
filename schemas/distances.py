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

import copy
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from schemas.data_statistics import (
    Feature,
    Statistics,
    common_stats,
    features_of,
    not_finite,
    validate,
)
from schemas.image_statistics import image_measures
from sluice.splits import number_of_examples

MISSING = "missing or NaN"
_L_INFINITY, _JENSEN_SHANNON = "L-infinity", "Jensen-Shannon"
_Measures = anomalies_pb2.DriftSkewInfo.Measurement
_MEASURES = {
    _Measures.L_INFTY: _L_INFINITY,
    _Measures.JENSEN_SHANNON_DIVERGENCE: _JENSEN_SHANNON,
    _Measures.NORMALIZED_ABSOLUTE_DIFFERENCE: "normalized absolute difference",
}
# The types of a schema for those of statistics: INT, FLOAT, STRING, BYTES.
_TYPES = (schema_pb2.INT, schema_pb2.FLOAT, schema_pb2.BYTES, schema_pb2.BYTES)
# TFDV's stand-in for bytes that are no text, such as an image (its constants.py).
_BYTES = "__BYTES_VALUE__"
# A histogram has so many buckets, each of at least so many quantiles of TFDV.
_BUCKETS, _QUANTILES = 10, 3
_FAR = 1e300
_DIVISIONS, _SHARE = 2000, 0.998
# NumPy draws from less than 1e9 values.
_MAX_VALUES = 4e8


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
    now, before = features_of(current), features_of(control)
    for name in {**now, **before}:
        if name in left_out:
            continue
        if name in now and name in before:
            # TFDV takes 6 s for 2,000 features at once, and 0.4 s one by one.
            yield from _distances(name, now[name], before[name])
        change = abs(_missing(now.get(name)) - _missing(before.get(name)))
        if change:
            yield Distance(name, MISSING, change, None)


def _distances(name: str, *pair: Feature) -> Iterator[Distance]:
    now, _ = pair
    images, others = map(image_measures, pair)
    for key in [x for x in images if x in others]:
        for found in _distances(name, images[key], others[key]):
            yield replace(found, measure=f"{key}: {found.measure}")
    texts = [feature.string_stats for feature in pair]
    most_frequent = texts[0].rank_histogram.buckets
    if most_frequent and most_frequent[0].label == _BYTES:
        return
    feature = schema_pb2.Feature(name=name, type=_TYPES[now.type])
    limits = feature.drift_comparator
    # Only the most frequent values are known: of identifiers, nearly none.
    is_cut = any(text.unique > len(text.rank_histogram.buckets) for text in texts)
    limit = limits.infinity_norm if is_cut else limits.jensen_shannon_divergence
    limit.threshold = 1
    current, control = _alone(*pair)
    schema = schema_pb2.Schema(feature=[feature])
    anomalies = validate(current, schema, previous_span_statistics=control)
    for distance in measured(anomalies):
        yield replace(distance, limit=None)


def _alone(*pair: Feature) -> list[Statistics]:
    """Returns statistics of one feature, on common edges."""
    # TFDV measures nothing of a data set without examples.
    return on_common_edges(
        *(Statistics(datasets=[{"num_examples": 1, "features": [x]}]) for x in pair)
    )


def on_common_edges(current: Statistics, control: Statistics) -> list[Statistics]:
    """Returns copies whose histograms of numbers have the quantiles of ``control``."""
    copies = [copy.deepcopy(current), copy.deepcopy(control)]
    now, before = map(features_of, copies)
    for name in now.keys() & before.keys():
        _share_edges(now[name], before[name])
    return copies


def _share_edges(*pair: Feature) -> None:
    quantiles = [
        histogram.buckets
        for feature in pair
        for histogram in feature.num_stats.histograms
        if histogram.type == statistics_pb2.Histogram.QUANTILES and histogram.buckets
    ]
    if len(quantiles) < len(pair):
        return
    # TFDV takes NaN, and buckets that end at an infinity, for different on both sides.
    ends = [
        np.clip([x[0].low_value, *(bucket.high_value for bucket in x)], -_FAR, _FAR)
        for x in quantiles
    ]
    control = ends[-1]
    inner = control[: -1 : max(_QUANTILES, len(control) // _BUCKETS)]
    # The lowest value, such as many zeros, has a bucket, and so has what is below it.
    lowest = np.nextafter([min(x[0] for x in ends), control[0]], -np.inf)
    highest = max(x[-1] for x in ends)
    edges = sorted({*lowest, *inner, highest})
    for feature, own_ends, buckets in zip(pair, ends, quantiles, strict=True):
        below = np.cumsum([0.0, *(bucket.sample_count for bucket in buckets)])
        counts = np.diff(np.interp(edges, own_ends, below, left=0))
        histograms = feature.num_stats.histograms
        (histogram, *_) = histograms
        # NaN are the values of a last bucket.
        highs = [*edges[1:], np.nextafter(highest, np.inf)]
        values = zip(edges, highs, [*counts, histogram.num_nan], strict=True)
        del histograms[1:], histogram.buckets[:]
        for low, high, count in values:
            histogram.buckets.add(low_value=low, high_value=high, sample_count=count)
        histogram.num_nan = 0


def _missing(feature: Feature | None) -> float:
    """Returns the share of the examples without a value, or with NaN or infinity."""
    if feature is None:
        return 1.0
    common = common_stats(feature)
    share = sum(not_finite(feature)) / (common.tot_num_values or 1)
    present = common.num_non_missing * (1 - share)
    return 1 - present / ((common.num_missing + common.num_non_missing) or 1)


def measured(anomalies: anomalies_pb2.Anomalies) -> Iterator[Distance]:
    """Yields the distances that TFDV has measured, of drift or skew."""
    for info in anomalies.drift_skew_info:
        name = ".".join(info.path.step)
        for one in (*info.drift_measurements, *info.skew_measurements):
            measure = _MEASURES.get(one.type, "distance")
            if math.isfinite(one.value):
                yield Distance(name, measure, one.value, one.threshold)


def sizes(current: Statistics, control: Statistics, distance: Distance) -> str:
    """Returns how many examples a distance is of, and whether chance gives it."""
    numbers = map(number_of_examples, (current, control))
    text = "{:,} examples against {:,}".format(*numbers)
    if distance.is_by_chance:
        text += f", where chance gives up to {distance.chance:.2g}"
    return text


def with_chance(
    distance: Distance, current: Statistics, control: Statistics
) -> Distance:
    """Returns a distance, with what chance gives if it is not below its limit.

    Values of one example are not independent: each example counts as one draw.
    """
    of_images, _, measure = distance.measure.rpartition(": ")
    limit = distance.limit
    is_known = measure in (_L_INFINITY, _JENSEN_SHANNON, MISSING)
    if limit is None or distance.distance < limit or not is_known:
        return distance
    pair = [features_of(x).get(distance.feature) for x in (current, control)]
    if measure == MISSING:
        values = np.array([number_of_examples(x) for x in (current, control)])
        missing = values * [_missing(feature) for feature in pair]
        counts, per_example = np.stack([missing, values - missing], axis=1), 1.0
        left_out = 0.0
    else:
        known: list[Feature] = [*filter(None, pair)]
        if of_images:
            known = [image_measures(feature)[of_images] for feature in known]
        counts, values, per_example, left_out = _counts(*known)
    kept = np.rint(counts * np.minimum(1, _MAX_VALUES / values)[:, None]).astype(int)
    (size, other), pooled = kept.sum(axis=1), kept.sum(axis=0)
    if not (size and other):
        return replace(distance, chance=1.0)
    drawn = np.random.default_rng(0).multivariate_hypergeometric(
        pooled, size, size=_DIVISIONS, method="marginals"
    )
    p, q = drawn / size, (pooled - drawn) / other
    if measure == _JENSEN_SHANNON:
        divergence = _entropy((p + q) / 2) - (_entropy(p) + _entropy(q)) / 2
        # Values that TFDV does not list may be the same ones on both sides.
        chance = np.quantile(divergence, _SHARE) * per_example + 2 * left_out
    else:
        largest = np.abs(p - q).max(axis=1)
        chance = np.quantile(largest, _SHARE) * math.sqrt(per_example)
    # TFDV rounds otherwise.
    return replace(distance, chance=min(1.0, float(chance) + 1e-9))


def _counts(*pair: Feature) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Returns the number of each value, or in each bucket, and of all, by side.

    Also how many values an example has, at least 1, and the largest share of values
    that are not listed.
    """
    listed: list[dict[Any, float]] = []
    for statistics in _alone(*pair):
        (feature,) = features_of(statistics).values()
        texts = feature.string_stats.rank_histogram.buckets
        numbers = [x for one in feature.num_stats.histograms[:1] for x in one.buckets]
        by_value = {bucket.label: bucket.sample_count for bucket in texts}
        by_edge = {bucket.low_value: bucket.sample_count for bucket in numbers}
        listed.append(by_value or by_edge)
    keys = sorted({*listed[0], *listed[1]}, key=str)
    counts = np.array([[side.get(key, 0) for key in keys] for side in listed])
    common = [common_stats(feature) for feature in pair]
    values = np.maximum(1, [side.tot_num_values for side in common])
    # TFDV's counts of many different values are too high: each unlisted one is there.
    unlisted = [
        feature.string_stats.unique - len(side)
        for feature, side in zip(pair, listed, strict=True)
    ]
    left_out = np.maximum(unlisted, values - counts.sum(axis=1)) / values
    per_example = max(1.0, *(side.avg_num_values for side in common))
    return counts, values, per_example, max(0.0, *left_out)


def _entropy(p: np.ndarray) -> np.ndarray:
    return -(p * np.log2(np.where(p > 0, p, 1))).sum(axis=1)
