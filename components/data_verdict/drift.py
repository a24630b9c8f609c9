"""Compares statistics for drift and skew, with the schema's comparators.

TFDV measures: L-infinity on strings, Jensen-Shannon divergence on strings and numbers.
This module decides what to compare and reads the answer. It is TFDV itself, and not
TFX's DistributionValidator, because that node takes its thresholds from a config of its
own instead of the schema, needs an artifact for the statistics compared with (an
accepted span is known by its URI only), and knows neither environments nor skew.

A comparator that cannot be measured is reported; see ``uncompared``.
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
    told,
)
from components.data_verdict.uncompared import uncompared
from schemas.features import live_features

_Reasons = anomalies_pb2.AnomalyInfo
_COUNT_COMPARATOR = "num_examples_drift_comparator"


@dataclass(frozen=True)
class Comparison:
    """What one comparison found.

    Attributes:
      kind: ``drift``, ``split_drift`` or ``skew``.
      split: the split that was compared.
      against: what it was compared with, for people.
      features: how many features have a comparator.
      closest: the feature that is closest to its limit, with value and limit.
      findings: what is beyond its limit, or cannot be measured.
    """

    kind: str
    split: str
    against: str
    features: int
    closest: str
    findings: tuple[Finding, ...]


def compared_features(schema: schema_pb2.Schema, kind: str) -> list[schema_pb2.Feature]:
    """Returns the features that a kind of comparison looks at.

    ``skew_comparator`` is for skew, ``drift_comparator`` for the other two. What
    clients do not send is not compared with what they send.
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
    """Compares two statistics; None if the schema has no comparator for it.

    Imports TFDV, and with it TensorFlow, if there is something to compare.

    Args:
      schema: with the comparators.
      pair: what to compare.
      sensitive: features whose values are not told.
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
    findings = _too_far(pair, anomalies, measured, sensitive)
    findings += [
        *uncompared(pair, features, measured, {item.feature for item in findings}),
        *_count_changes(pair, anomalies),
    ]
    closest = max(measured, default=None, key=lambda item: item.share)
    return Comparison(
        kind=pair.kind,
        split=pair.split,
        against=pair.against,
        features=len(features),
        closest=str(closest) if closest else "",
        findings=tuple(findings),
    )


def _too_far(
    pair: Pair,
    anomalies: anomalies_pb2.Anomalies,
    measured: Sequence[Measurement],
    sensitive: Collection[str],
) -> list[Finding]:
    """Returns a finding for each feature of which TFDV says so."""
    distances: dict[str, list[Measurement]] = {}
    for found in measured:
        distances.setdefault(found.feature, []).append(found)
    findings = []
    for key, info in sorted(anomalies.anomaly_info.items()):
        name = feature_name(key, info)
        # Of two comparators the one that TFDV complains of is over its limit.
        missed = [
            item for item in distances.get(name, ()) if not item.value <= item.limit
        ]
        for reason in info.reason:
            kind = anomaly_kind(reason.type)
            if kind not in (*COMPARISONS, "not_compared"):
                continue  # Of the schema: those are judged by themselves.
            item = _named(reason, missed or distances.get(name, []))
            findings.append(
                Finding(
                    kind="not_compared" if kind == "not_compared" else pair.kind,
                    split=pair.split,
                    check=pair.label(name),
                    why=_why(pair, reason, item, name in sensitive),
                    feature=name,
                    limit=f"{item.measure} <= {item.limit:g}" if item else "measured",
                    baseline=pair.against,
                    actual=item.value if item and math.isfinite(item.value) else None,
                )
            )
    return findings


def _named(
    reason: anomalies_pb2.AnomalyInfo.Reason, items: Sequence[Measurement]
) -> Measurement | None:
    """Returns the measurement that a reason is about, None if there is none."""
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
        return WITHHELD if withheld else told(reason.description)
    distance = f"{item.measure} distance {item.value:.4g}"
    if withheld:
        return f"{distance}; {WITHHELD}"
    _, found, value = reason.description.partition("maximum difference is: ")
    return f"{distance}, largest for the value {told(value)!r}" if found else distance


def _count_changes(pair: Pair, anomalies: anomalies_pb2.Anomalies) -> list[Finding]:
    """Returns what the schema's comparator of the number of examples has found."""
    reasons = anomalies.dataset_anomaly_info.reason
    return [
        Finding(
            kind="count_change",
            split=pair.split,
            check="change in examples",
            why=told(reason.description),
            limit="as in the schema",
            baseline=pair.against,
        )
        for reason in reasons
        if anomaly_kind(reason.type) == "count_change"
    ]


def validate(
    statistics: statistics_pb2.DatasetFeatureStatisticsList,
    schema: schema_pb2.Schema,
    *,
    environment: str | None = None,
    previous: statistics_pb2.DatasetFeatureStatisticsList | None = None,
    serving: statistics_pb2.DatasetFeatureStatisticsList | None = None,
) -> anomalies_pb2.Anomalies:
    """Returns what TFDV finds wrong with statistics.

    The only call into TFDV, whose import brings TensorFlow and takes seconds.

    Args:
      statistics: of the data to judge.
      schema: what it should be like.
      environment: one of the schema's default environments; None for all features.
      previous: for the drift comparators.
      serving: for the skew comparators.
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
