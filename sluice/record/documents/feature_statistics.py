"""Converts the statistics of a feature from TFDV's proto to JSON.

Weighted statistics, custom statistics and histograms of the number of values are left
out.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from tensorflow_metadata.proto.v0 import statistics_pb2

from sluice.record.json_number import json_number

MAX_TOP_VALUES = 20
MAX_RANKS = 100
MAX_BUCKETS = 100
MAX_TEXT_CHARS = 200

# TFDV's stand-ins for bytes that are no text and for long text (its constants.py).
_PLACEHOLDERS = ("__BYTES_VALUE__", "__LARGE_BYTES__")


def feature_name(feature: statistics_pb2.FeatureNameStatistics) -> str:
    """Returns the feature's name; the steps of a nested one are joined by dots."""
    return ".".join(feature.path.step) or feature.name


def feature_statistics(
    feature: statistics_pb2.FeatureNameStatistics, *, sensitive: bool = False
) -> dict[str, Any]:
    """Returns one feature's statistics, as ``docs/run_record.md`` describes them.

    Args:
      feature: as TFDV computed it.
      sensitive: whether only counts may be shown, no values of the data.
    """
    kind = feature.WhichOneof("stats")
    stats = getattr(feature, kind) if kind else statistics_pb2.StructStatistics()
    common = stats.common_stats
    return {
        "name": feature_name(feature),
        "type": statistics_pb2.FeatureNameStatistics.Type.Name(feature.type),
        "present": common.num_non_missing,
        "missing": common.num_missing,
        "min_values": common.min_num_values,
        "max_values": common.max_num_values,
        "sensitive": sensitive,
        "numeric": _numeric(stats, sensitive) if kind == "num_stats" else None,
        "string": _string(stats, sensitive) if kind == "string_stats" else None,
        "bytes": _bytes(stats, sensitive) if kind == "bytes_stats" else None,
    }


def _numeric(
    stats: statistics_pb2.NumericStatistics, sensitive: bool
) -> dict[str, Any]:
    histograms = {item.type: item for item in stats.histograms}
    standard = histograms.get(statistics_pb2.Histogram.STANDARD)
    quantiles = histograms.get(statistics_pb2.Histogram.QUANTILES)
    nan = max((item.num_nan for item in stats.histograms), default=0)
    common = stats.common_stats
    # Without a number TFDV leaves them unset, and an unset one reads as 0.
    known = (common.tot_num_values or common.num_non_missing) > nan and not sensitive
    names = ("mean", "std_dev", "min", "median", "max")
    return {
        "zeros": stats.num_zeros,
        "nan": nan,
        **{x: json_number(getattr(stats, x)) if known else None for x in names},
        "histogram": _histogram(standard) if known else None,
        "quantiles": _histogram(quantiles) if known else None,
    }


def _histogram(histogram: statistics_pb2.Histogram | None) -> dict[str, Any] | None:
    buckets = list(histogram.buckets) if histogram is not None else []
    if not 0 < len(buckets) <= MAX_BUCKETS:
        return None
    edges = [
        buckets[0].low_value,
        # TFDV counts infinite values in buckets from infinity to infinity.
        *(
            low.high_value if math.isfinite(low.high_value) else high.low_value
            for low, high in itertools.pairwise(buckets)
        ),
        buckets[-1].high_value,
    ]
    return {
        "edges": [json_number(edge) for edge in edges],
        "counts": [json_number(bucket.sample_count) for bucket in buckets],
    }


def _string(stats: statistics_pb2.StringStatistics, sensitive: bool) -> dict[str, Any]:
    top = [(item.value, item.frequency) for item in stats.top_values]
    ranks = [(item.label, item.sample_count) for item in stats.rank_histogram.buckets]
    known = stats.common_stats.num_non_missing > 0 and not sensitive
    return {
        "unique": stats.unique,
        "avg_length": json_number(stats.avg_length) if known else None,
        "invalid_utf8": stats.invalid_utf8_count,
        "top_values": _counts(top[:MAX_TOP_VALUES], sensitive),
        "rank_histogram": _counts(ranks, sensitive)
        if len(ranks) <= MAX_RANKS
        else None,
    }


def _counts(counts: list[tuple[str, float]], sensitive: bool) -> list[dict[str, Any]]:
    return [
        {"value": None if sensitive else _cut(value), "count": json_number(count)}
        for value, count in counts
        if value not in _PLACEHOLDERS
    ]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT_CHARS else text[:MAX_TEXT_CHARS] + "..."


def _bytes(stats: statistics_pb2.BytesStatistics, sensitive: bool) -> dict[str, Any]:
    known = stats.common_stats.num_non_missing > 0 and not sensitive
    return {
        "unique": stats.unique,
        "avg_length": json_number(stats.avg_num_bytes) if known else None,
        "min_length": json_number(stats.min_num_bytes) if known else None,
        "max_length": json_number(stats.max_num_bytes) if known else None,
    }
