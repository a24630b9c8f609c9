"""Finds comparisons that TFDV silently skipped.

TFDV takes the L-infinity distance of two numeric features for 0, counts all bytes that
are no text as one value, and passes over a comparator without a threshold.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

from components.data_verdict.distances import Measurement, Pair
from components.data_verdict.finding import Finding
from components.data_verdict.schema_findings import features_of


def uncompared(
    pair: Pair,
    features: Sequence[schema_pb2.Feature],
    measured: Sequence[Measurement],
    explained: Collection[str | None],
) -> list[Finding]:
    """Returns a finding for each feature without a distance, and why it has none.

    Args:
      pair: what was compared.
      features: those with a comparator.
      measured: all distances.
      explained: features that have a finding already.
    """
    current, control = features_of(pair.current), features_of(pair.control)
    values: dict[str, list[float]] = {}
    for item in measured:
        values.setdefault(item.feature, []).append(item.value)
    return [
        Finding(
            kind="not_compared",
            split=pair.split,
            check=pair.label(name),
            why=why,
            feature=name,
            limit="measured",
            baseline=pair.against,
            actual=None,
        )
        for feature in features
        if (name := feature.name) not in explained
        and (
            why := _gap(
                pair.comparator(feature),
                current.get(name),
                control.get(name),
                values.get(name, []),
            )
        )
    ]


def _gap(
    comparator: schema_pb2.FeatureComparator,
    current: statistics_pb2.FeatureNameStatistics | None,
    control: statistics_pb2.FeatureNameStatistics | None,
    values: Sequence[float],
) -> str | None:
    """Returns why a feature was not compared, None if it was."""
    if current is None:
        return "the feature is missing from this data" if control else None
    if not any(limit.HasField("threshold") for _, limit in comparator.ListFields()):
        return "the comparator has no threshold"
    kind = current.WhichOneof("stats")
    if kind == "num_stats" and comparator.HasField("infinity_norm"):
        return (
            "L-infinity is not measured on numbers: write jensen_shannon_divergence "
            "into the schema"
        )
    if kind == "string_stats" and _is_mostly_bytes(current.string_stats):
        return "distances are not measured on bytes that are not text"
    if not values:
        return "TFDV has measured no distance: there are no finite values to compare"
    return None if all(map(math.isfinite, values)) else "the distance is not a number"


def _is_mostly_bytes(strings: statistics_pb2.StringStatistics) -> bool:
    values = strings.common_stats.tot_num_values or strings.common_stats.num_non_missing
    return 2 * strings.invalid_utf8_count > values
