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

from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2

from components.data_verdict.policy import (
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
from schemas.data_statistics import import_tfdv
from schemas.loader import SERVING, TRAINING, live_features
from sluice.record.verdict import Check

_Measures = anomalies_pb2.DriftSkewInfo.Measurement
_MEASURES = {
    _Measures.L_INFTY: "L-infinity",
    _Measures.JENSEN_SHANNON_DIVERGENCE: "Jensen-Shannon",
    _Measures.NORMALIZED_ABSOLUTE_DIFFERENCE: "normalized absolute difference",
}
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
    found = _distances(pair.kind, anomalies)
    distances = sorted(found, key=lambda x: x.distance / (x.limit or 1), reverse=True)
    rows = [*_rows(pair, features, anomalies, distances, sensitive)]
    if not rows:
        passed = Check(
            check=COMPARISON_NAMES[pair.kind],
            slice=pair.split,
            limit="as in the schema",
            baseline=pair.against,
            actual=f"features compared: {len(features)}",
            passed=True,
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
    known = {*features_of(pair.current), *features_of(pair.control)}
    described = {
        feature_name(key, info): " ".join(x.description.strip() for x in info.reason)
        for key, info in anomalies.anomaly_info.items()
    }
    measured = defaultdict(list)
    for item in distances:
        measured[item.feature].append(item)
    # Features that neither has are missing, which has a row of its own.
    for name in sorted(known.intersection(feature.name for feature in features)):
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
        if not measured[name]:
            yield row
        why = WITHHELD if name in sensitive else one_line(described.get(name, ""))
        for item in measured[name]:
            if item.distance > item.limit:
                yield replace(
                    row,
                    kind=pair.kind,
                    why=why,
                    limit=item.limit,
                    comparison="<=",
                    measure=item.measure,
                    actual=item.distance,
                )


def validate_in(
    environment: str, statistics: Statistics, schema: schema_pb2.Schema
) -> anomalies_pb2.Anomalies:
    """Returns TFDV's anomalies in an environment; the schema need not declare it."""
    declared = schema_pb2.Schema()
    declared.CopyFrom(schema)
    if environment not in declared.default_environment:
        declared.default_environment.append(environment)
    return validate(statistics, declared, environment=environment)


def validate(statistics: Statistics, schema: schema_pb2.Schema, **options: Any) -> Any:
    """Returns TFDV's ``Anomalies``; options are those of TFDV's function.

    The only call into TFDV, whose import brings TensorFlow and takes seconds.
    """
    import_tfdv()
    from tensorflow_data_validation.api import validation_api

    return validation_api.validate_statistics_internal(statistics, schema, **options)
