"""Two sets of statistics, compared as the schema's comparators say.

TFDV measures: L-infinity on strings, Jensen-Shannon divergence on strings and numbers.
This module decides what to compare and reads the answer. It is TFDV itself, and not
TFX's DistributionValidator, because that node takes its thresholds from a config of its
own instead of the schema, needs an artifact for the statistics compared with (an
accepted span is known by its URI only), and knows neither environments nor skew.

A comparator that cannot be measured is reported: TFDV takes the L-infinity distance of
two numeric features for 0.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from components.data_verdict.anomaly_kind import COMPARISONS, anomaly_kind
from components.data_verdict.finding import Finding
from components.data_verdict.schema_findings import (
    WITHHELD,
    feature_name,
    features_of,
)
from components.data_verdict.validate import validate

_MEASURE_OF = {
    anomalies_pb2.DriftSkewInfo.Measurement.L_INFTY: "L-infinity",
    anomalies_pb2.DriftSkewInfo.Measurement.JENSEN_SHANNON_DIVERGENCE: "Jensen-Shannon",
}


@dataclass(frozen=True)
class Comparison:
    """What one comparison found.

    Attributes:
      kind: ``drift``, ``split_drift`` or ``skew``.
      split: the split that was compared.
      against: what it was compared with, for people.
      features: how many features have a comparator.
      closest: the feature that comes closest to its limit, with value and limit.
      findings: what is beyond its limit, or cannot be measured.
    """

    kind: str
    split: str
    against: str
    features: int
    closest: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Pair:
    """Two statistics to compare.

    Attributes:
      kind: one of ``COMPARISONS``.
      split: the split that is judged.
      against: what it is compared with, for people.
      current: statistics of the split.
      control: statistics of what it is compared with.
    """

    kind: str
    split: str
    against: str
    current: statistics_pb2.DatasetFeatureStatisticsList
    control: statistics_pb2.DatasetFeatureStatisticsList


def compared_features(schema: schema_pb2.Schema, kind: str) -> list[schema_pb2.Feature]:
    """Returns the features that a kind of comparison looks at.

    ``skew_comparator`` is for skew, ``drift_comparator`` for the other two. What
    clients do not send is not compared with what they send.
    """
    key = _comparator_key(kind)
    absent = "SERVING" if kind == "skew" else "TRAINING"
    return [
        feature
        for feature in schema.feature
        if feature.HasField(key) and absent not in feature.not_in_environment
    ]


def compare(
    schema: schema_pb2.Schema, pair: Pair, sensitive: Collection[str] = ()
) -> Comparison | None:
    """Compares two statistics; None if no feature has a comparator for it.

    Imports TFDV, and with it TensorFlow, if there is something to compare.

    Args:
      schema: with the comparators.
      pair: what to compare.
      sensitive: features whose values are not told.
    """
    assert pair.kind in COMPARISONS, pair.kind
    features = compared_features(schema, pair.kind)
    if not features:
        return None
    only = schema_pb2.Schema(
        feature=features,
        string_domain=schema.string_domain,
        default_environment=schema.default_environment,
    )
    anomalies = (
        validate(pair.current, only, serving=pair.control)
        if pair.kind == "skew"
        else validate(pair.current, only, previous=pair.control)
    )
    measured = _measurements(pair.kind, anomalies)
    findings = _too_far(pair, anomalies, sensitive)
    told = {finding.feature for finding in findings}
    findings += [
        _not_compared(pair, feature.name, why)
        for feature in features
        if feature.name not in told and (why := _gap(pair, feature, measured))
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


@dataclass(frozen=True)
class _Measurement:
    feature: str
    measure: str
    value: float
    limit: float

    @property
    def share(self) -> float:
        return self.value / self.limit if self.limit else self.value

    def __str__(self) -> str:
        return (
            f"{self.feature!r} comes closest to its limit: {self.measure} "
            f"{self.value:.4g} of {self.limit:g}"
        )


def _measurements(kind: str, anomalies: anomalies_pb2.Anomalies) -> list[_Measurement]:
    key = "skew_measurements" if kind == "skew" else "drift_measurements"
    return [
        _Measurement(
            feature=".".join(info.path.step),
            measure=_MEASURE_OF.get(item.type, "distance"),
            value=item.value,
            limit=item.threshold,
        )
        for info in anomalies.drift_skew_info
        for item in getattr(info, key)
    ]


def _too_far(
    pair: Pair, anomalies: anomalies_pb2.Anomalies, sensitive: Collection[str]
) -> list[Finding]:
    """Returns a finding for each feature of which TFDV says so."""
    measured = {item.feature: item for item in _measurements(pair.kind, anomalies)}
    found = []
    for key, info in sorted(anomalies.anomaly_info.items()):
        name = feature_name(key, info)
        item = measured.get(name)
        for reason in info.reason:
            kind = anomaly_kind(reason.type)
            if kind not in (*COMPARISONS, "not_compared"):
                continue  # Of the schema: those are judged by themselves.
            found.append(
                Finding(
                    kind="not_compared" if kind == "not_compared" else pair.kind,
                    split=pair.split,
                    check=f"{pair.kind} of {name!r}",
                    why=_why(reason, item, name in sensitive),
                    feature=name,
                    limit=f"{item.measure} <= {item.limit:g}" if item else "measured",
                    baseline=pair.against,
                    actual=item.value if item and math.isfinite(item.value) else None,
                )
            )
    return found


def _why(
    reason: anomalies_pb2.AnomalyInfo.Reason,
    item: _Measurement | None,
    withheld: bool,
) -> str:
    if item is None:
        return WITHHELD if withheld else reason.description.strip()
    distance = f"{item.measure} distance {item.value:.4g}"
    if withheld:
        return f"{distance}; {WITHHELD}"
    _, found, value = reason.description.partition("maximum difference is: ")
    return f"{distance}, largest for the value {value!r}" if found else distance


def _gap(
    pair: Pair, feature: schema_pb2.Feature, measured: Sequence[_Measurement]
) -> str | None:
    """Returns why a feature was not compared though TFDV does not say so."""
    current, control = (
        {".".join(item.path.step): item.WhichOneof("stats") for item in features}
        for features in (features_of(pair.current), features_of(pair.control))
    )
    name = feature.name
    if name not in current:
        return "the feature is missing from this data" if name in control else None
    comparator = getattr(feature, _comparator_key(pair.kind))
    if current[name] == "num_stats" and comparator.HasField("infinity_norm"):
        return (
            "L-infinity is not measured on numbers: write jensen_shannon_divergence "
            "into the schema"
        )
    values = [item.value for item in measured if item.feature == name]
    if not values:
        return "TFDV has measured no distance: there are no finite values to compare"
    return None if all(map(math.isfinite, values)) else "the distance is not a number"


def _not_compared(pair: Pair, feature: str, why: str) -> Finding:
    return Finding(
        kind="not_compared",
        split=pair.split,
        check=f"{pair.kind} of {feature!r}",
        why=why,
        feature=feature,
        limit="measured",
        baseline=pair.against,
        actual=None,
    )


def _comparator_key(kind: str) -> str:
    return "skew_comparator" if kind == "skew" else "drift_comparator"
