"""Drift and skew between two statistics, by the schema's comparators.

TFDV computes the distances: L-infinity on strings, Jensen-Shannon divergence on strings
and numbers (``distances``). This module selects the features to compare and turns the
result into findings. A comparator that TFDV did not measure is a finding too.

TFX's DistributionValidator is not used: it takes thresholds from a config of its own
instead of the schema, needs an artifact for the baseline statistics (accepted data is
known by its URI only), and supports neither environments nor skew.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from components.data_verdict.anomaly_kind import (
    COMPARISONS,
    anomaly_kind,
)
from components.data_verdict.distances import (
    REASON_OF,
    Measurement,
    Pair,
    comparator_key,
    measurements,
)
from components.data_verdict.finding import Finding
from components.data_verdict.schema_findings import (
    WITHHELD,
    feature_name,
    features_of,
    one_line,
)
from schemas.features import live_features

_Reasons = anomalies_pb2.AnomalyInfo
_COUNT_COMPARATOR = "num_examples_drift_comparator"


@dataclass(frozen=True)
class Comparison:
    """Result of comparing one split with a baseline.

    Attributes:
      kind: ``drift``, ``split_drift`` or ``skew``.
      split: the split that was compared.
      against: description of the baseline.
      features: number of features with a comparator.
      closest: the feature closest to its limit, with value and limit.
      findings: distances over their limit, and comparators that were not measured.
      distances: all that were measured, those closest to their limit first.
    """

    kind: str
    split: str
    against: str
    features: int
    closest: str
    findings: tuple[Finding, ...]
    distances: tuple[Measurement, ...] = ()


def compared_features(schema: schema_pb2.Schema, kind: str) -> list[schema_pb2.Feature]:
    """Returns the features with a comparator for a kind of comparison.

    ``skew_comparator`` is for skew, ``drift_comparator`` for the other two. Features
    that are not in serving requests are left out of skew.
    """
    key = comparator_key(kind)
    absent = "SERVING" if kind == "skew" else "TRAINING"
    return [
        feature
        for feature in live_features(schema)
        if feature.HasField(key) and absent not in feature.not_in_environment
    ]


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
    assert pair.kind in COMPARISONS, pair.kind
    features = compared_features(schema, pair.kind)
    only = schema_pb2.Schema(
        feature=features,
        string_domain=schema.string_domain,
        default_environment=schema.default_environment,
    )
    if pair.kind == "drift" and schema.dataset_constraints.HasField(_COUNT_COMPARATOR):
        only.dataset_constraints.num_examples_drift_comparator.CopyFrom(
            schema.dataset_constraints.num_examples_drift_comparator
        )
    elif not features:
        return None
    anomalies = (
        validate(pair.current, only, serving=pair.control)
        if pair.kind == "skew"
        else validate(pair.current, only, previous=pair.control)
    )
    measured = measurements(pair.kind, anomalies)
    findings = _over_limit(pair, anomalies, measured, sensitive)
    findings += [
        *_not_compared(pair, features, measured, {item.feature for item in findings}),
        *_count_changes(pair, anomalies),
    ]
    measured.sort(key=lambda item: -item.share)
    return Comparison(
        kind=pair.kind,
        split=pair.split,
        against=pair.against,
        features=len(features),
        closest=str(measured[0]) if measured else "",
        findings=tuple(findings),
        distances=tuple(measured),
    )


def _over_limit(
    pair: Pair,
    anomalies: anomalies_pb2.Anomalies,
    measured: Sequence[Measurement],
    sensitive: Collection[str],
) -> list[Finding]:
    """Returns a finding for each distance that TFDV reports as over its limit."""
    distances: dict[str, list[Measurement]] = {}
    for found in measured:
        distances.setdefault(found.feature, []).append(found)
    findings = []
    for key, info in sorted(anomalies.anomaly_info.items()):
        name = feature_name(key, info)
        # Of two comparators, TFDV reports the one over its limit.
        over = [
            item for item in distances.get(name, ()) if not item.value <= item.limit
        ]
        for reason in info.reason:
            kind = anomaly_kind(reason.type)
            if kind not in (*COMPARISONS, "not_compared"):
                continue  # Schema anomalies have findings of their own.
            item = _measurement_of(reason, over or distances.get(name, []))
            findings.append(
                Finding(
                    kind="not_compared" if kind == "not_compared" else pair.kind,
                    split=pair.split,
                    check=pair.label(name),
                    why=_why(pair, reason, item, name in sensitive),
                    feature=name,
                    limit=item.limit if item else "measured",
                    comparison="<=" if item else None,
                    measure=item.measure if item else None,
                    baseline=pair.against,
                    actual=item.value if item and math.isfinite(item.value) else None,
                )
            )
    return findings


def _measurement_of(
    reason: anomalies_pb2.AnomalyInfo.Reason, items: Sequence[Measurement]
) -> Measurement | None:
    """Returns the measurement that an anomaly's reason refers to, if any."""
    own = [item for item in items if REASON_OF.get(item.measure) == reason.type]
    return next(iter([*own, *items]), None)


def _why(
    pair: Pair,
    reason: anomalies_pb2.AnomalyInfo.Reason,
    item: Measurement | None,
    withheld: bool,
) -> str:
    if reason.type == _Reasons.COMPARATOR_CONTROL_DATA_MISSING:
        return f"the feature is missing from what it is compared with: {pair.against}"
    if item is None:
        return WITHHELD if withheld else one_line(reason.description)
    distance = f"{item.measure} distance {item.value:.4g}"
    if withheld:
        return f"{distance}; {WITHHELD}"
    _, found, value = reason.description.partition("maximum difference is: ")
    return (
        f"{distance}, largest for the value {one_line(value)!r}" if found else distance
    )


def _count_changes(pair: Pair, anomalies: anomalies_pb2.Anomalies) -> list[Finding]:
    """Returns findings of the schema's ``num_examples_drift_comparator``."""
    reasons = anomalies.dataset_anomaly_info.reason
    return [
        Finding(
            kind="count_change",
            split=pair.split,
            check="change in examples",
            why=one_line(reason.description),
            limit="as in the schema",
            baseline=pair.against,
        )
        for reason in reasons
        if anomaly_kind(reason.type) == "count_change"
    ]


def _not_compared(
    pair: Pair,
    features: Sequence[schema_pb2.Feature],
    measured: Sequence[Measurement],
    explained: Collection[str | None],
) -> list[Finding]:
    """Returns a finding for each feature that TFDV silently did not compare.

    TFDV takes the L-infinity distance of two numeric features for 0, counts all bytes
    that are not text as one value, and skips a comparator without a threshold.

    Args:
      pair: the statistics that were compared.
      features: those with a comparator.
      measured: all distances.
      explained: features that already have a finding.
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
            why := _reason_not_compared(
                pair.comparator(feature),
                current.get(name),
                control.get(name),
                values.get(name, []),
            )
        )
    ]


def _reason_not_compared(
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


def validate(
    statistics: statistics_pb2.DatasetFeatureStatisticsList,
    schema: schema_pb2.Schema,
    *,
    environment: str | None = None,
    previous: statistics_pb2.DatasetFeatureStatisticsList | None = None,
    serving: statistics_pb2.DatasetFeatureStatisticsList | None = None,
) -> anomalies_pb2.Anomalies:
    """Returns TFDV's anomalies.

    The only call into TFDV, whose import brings TensorFlow and takes seconds.

    Args:
      statistics: of the data to validate.
      schema: to validate against.
      environment: one of the schema's default environments; None for all features.
      previous: baseline of the drift comparators.
      serving: baseline of the skew comparators.
    """
    from tensorflow_data_validation.api.validation_api import (
        validate_statistics_internal,
    )

    return validate_statistics_internal(
        statistics,
        schema,
        environment=environment,
        previous_span_statistics=previous,
        serving_statistics=serving,
    )
