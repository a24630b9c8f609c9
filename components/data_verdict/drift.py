"""Drift and skew between two statistics, by the schema's comparators.

TFDV computes the distances: L-infinity on strings, Jensen-Shannon divergence on strings
and numbers. This module selects the features to compare and turns the result into rows.
A comparator that TFDV did not measure is an anomaly too.

TFX's DistributionValidator is not used: it takes thresholds from a config of its own
instead of the schema, needs an artifact for the baseline statistics (accepted data is
known by its URI only), and supports neither environments nor skew.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from components.data_verdict.anomaly_kind import (
    COMPARISON_NAMES,
    anomaly,
)
from components.data_verdict.schema_rows import (
    WITHHELD,
    Statistics,
    feature_name,
    features_of,
    one_line,
)
from schemas.loader import SERVING, TRAINING, live_features
from sluice.record.verdict import Check

_Measures = anomalies_pb2.DriftSkewInfo.Measurement
_MEASURES = {
    _Measures.L_INFTY: "L-infinity",
    _Measures.JENSEN_SHANNON_DIVERGENCE: "Jensen-Shannon",
    _Measures.NORMALIZED_ABSOLUTE_DIFFERENCE: "normalized absolute difference",
}
# What TFDV says of the value that differs most.
_LARGEST = "maximum difference is: "
_NOT_COMPARED = (
    "TFDV has measured no distance: one of both has no values of the feature that are "
    "finite numbers or text"
)


@dataclass(frozen=True)
class Pair:
    """Two statistics to compare.

    Attributes:
      kind: one of ``COMPARISON_NAMES``.
      split: the split of the current data.
      against: description of the baseline.
      current: statistics of the split.
      control: statistics of the baseline.
    """

    kind: str
    split: str
    against: str
    current: Statistics
    control: Statistics


@dataclass(frozen=True)
class Distance:
    """A distance between two distributions of a feature, and its limit."""

    feature: str
    measure: str
    distance: float
    limit: float

    @property
    def share(self) -> float:
        """The distance relative to its limit; more than 1 is over the limit."""
        return self.distance / self.limit if self.limit else self.distance


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison: the rows, and all distances that were measured.

    Distances are sorted by their share of the limit, the largest first.
    """

    pair: Pair
    rows: tuple[Check, ...]
    distances: tuple[Distance, ...]


def compare(
    schema: schema_pb2.Schema, pair: Pair, sensitive: Collection[str] = ()
) -> Comparison | None:
    """Compares two statistics; None if the schema has no comparator for them.

    Imports TFDV, and with it TensorFlow, if there is something to compare.

    Args:
      schema: with the comparators.
      pair: the statistics to compare.
      sensitive: features whose values are withheld.
    """
    features = _compared_features(schema, pair.kind)
    if not features:
        return None
    only = schema_pb2.Schema(
        feature=features,
        string_domain=schema.string_domain,
        default_environment=schema.default_environment,
    )
    against = "serving" if pair.kind == "skew" else "previous_span"
    anomalies = validate(pair.current, only, **{f"{against}_statistics": pair.control})
    distances = sorted(_distances(pair.kind, anomalies), key=lambda item: -item.share)
    rows = [*_rows(pair, features, anomalies, distances, sensitive)]
    if not rows:
        plural = "feature" if len(features) == 1 else "features"
        passed = Check(
            check=COMPARISON_NAMES[pair.kind],
            slice=pair.split,
            limit="as in the schema",
            baseline=pair.against,
            actual=f"{len(features)} {plural} compared",
            passed=True,
            why=_closest(distances),
        )
        rows = [passed]
    return Comparison(pair, tuple(rows), tuple(distances))


def _compared_features(
    schema: schema_pb2.Schema, kind: str
) -> list[schema_pb2.Feature]:
    """Returns the features with a comparator for a kind of comparison.

    ``skew_comparator`` is for skew, ``drift_comparator`` for the other two. Features
    that are not in serving requests are left out of skew.
    """
    key = "skew_comparator" if kind == "skew" else "drift_comparator"
    absent = SERVING if kind == "skew" else TRAINING
    return [
        feature
        for feature in live_features(schema)
        if feature.HasField(key) and absent not in feature.not_in_environment
    ]


def _distances(kind: str, anomalies: anomalies_pb2.Anomalies) -> Iterator[Distance]:
    key = "skew_measurements" if kind == "skew" else "drift_measurements"
    for info in anomalies.drift_skew_info:
        name = ".".join(info.path.step)
        for item in getattr(info, key):
            measure = _MEASURES.get(item.type, "distance")
            if math.isfinite(item.value):
                yield Distance(name, measure, item.value, item.threshold)


def _rows(
    pair: Pair,
    features: Sequence[schema_pb2.Feature],
    anomalies: anomalies_pb2.Anomalies,
    distances: Sequence[Distance],
    sensitive: Collection[str],
) -> Iterator[Check]:
    """Yields a row for each distance over its limit, and for each that is unknown."""
    current, control = features_of(pair.current), features_of(pair.control)
    largest = {
        feature_name(key, info): reason.description.partition(_LARGEST)[2]
        for key, info in anomalies.anomaly_info.items()
        for reason in info.reason
        if _LARGEST in reason.description
    }
    measured = defaultdict(list)
    for item in distances:
        measured[item.feature].append(item)
    for name in sorted(feature.name for feature in features):
        if name not in current and name not in control:
            continue  # It is missing, which has a row of its own.
        row = anomaly(
            "not_compared",
            pair.split,
            f"{COMPARISON_NAMES[pair.kind]}: {name!r}",
            _NOT_COMPARED,
            feature=name,
            limit="measured",
            baseline=pair.against,
            actual=None,
        )
        if not (measured[name] and _has_text(current[name])):
            yield row
            continue
        for item in measured[name]:
            if item.distance > item.limit:
                why = _why(item, largest.get(name), name in sensitive)
                yield replace(
                    row,
                    kind=pair.kind,
                    why=why,
                    limit=item.limit,
                    comparison="<=",
                    measure=item.measure,
                    actual=item.distance,
                )


def _has_text(feature: statistics_pb2.FeatureNameStatistics) -> bool:
    """Whether most values are text: TFDV counts all other bytes as one value."""
    strings = feature.string_stats
    values = strings.common_stats.tot_num_values or strings.common_stats.num_non_missing
    return 2 * strings.invalid_utf8_count <= values


def _why(item: Distance, largest: str | None, withheld: bool) -> str:
    text = f"{item.measure} distance {item.distance:.4g}"
    if withheld:
        return f"{text}; {WITHHELD}"
    return f"{text}, largest for the value {one_line(largest)!r}" if largest else text


def _closest(distances: Sequence[Distance]) -> str:
    if not distances:
        return ""
    item = distances[0]
    return (
        f"{item.feature!r} is closest to its limit: {item.measure} "
        f"{item.distance:.4g} of {item.limit:g}"
    )


def validate(statistics: Statistics, schema: schema_pb2.Schema, **options: Any) -> Any:
    """Returns TFDV's ``Anomalies``; options are those of TFDV's function.

    The only call into TFDV, whose import brings TensorFlow and takes seconds.
    """
    from tensorflow_data_validation.api import validation_api

    return validation_api.validate_statistics_internal(statistics, schema, **options)
