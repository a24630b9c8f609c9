"""Pairs of statistics to compare, and the drift distances that TFDV measures."""

from __future__ import annotations

from dataclasses import dataclass

from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from components.data_verdict.anomaly_kind import COMPARISON_NAMES


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

    def label(self, feature: str) -> str:
        """Returns what the verdict calls the comparison of a feature."""
        return f"{COMPARISON_NAMES[self.kind]}: {feature!r}"

    def comparator(self, feature: schema_pb2.Feature) -> schema_pb2.FeatureComparator:
        """Returns what the schema says of a feature; it may be empty."""
        return getattr(feature, comparator_key(self.kind))


def comparator_key(kind: str) -> str:
    """Returns where a feature of the schema has its comparator for a kind."""
    return "skew_comparator" if kind == "skew" else "drift_comparator"


_Measures = anomalies_pb2.DriftSkewInfo.Measurement
_MEASURE_OF = {
    _Measures.L_INFTY: "L-infinity",
    _Measures.JENSEN_SHANNON_DIVERGENCE: "Jensen-Shannon",
    _Measures.NORMALIZED_ABSOLUTE_DIFFERENCE: "normalized absolute difference",
}
_Reasons = anomalies_pb2.AnomalyInfo
REASON_OF = {
    "L-infinity": _Reasons.COMPARATOR_L_INFTY_HIGH,
    "Jensen-Shannon": _Reasons.COMPARATOR_JENSEN_SHANNON_DIVERGENCE_HIGH,
    "normalized absolute difference": (
        _Reasons.COMPARATOR_NORMALIZED_ABSOLUTE_DIFFERENCE_HIGH
    ),
}


@dataclass(frozen=True)
class Measurement:
    """A distance between two distributions of a feature.

    Attributes:
      feature: its name.
      measure: what kind of distance.
      value: how far they are apart.
      limit: how far they may be.
    """

    feature: str
    measure: str
    value: float
    limit: float

    @property
    def share(self) -> float:
        """The part of the limit that is used up; more than 1 is too far."""
        return self.value / self.limit if self.limit else self.value

    def __str__(self) -> str:
        return (
            f"{self.feature!r} is closest to its limit: {self.measure} "
            f"{self.value:.4g} of {self.limit:g}"
        )


def measurements(kind: str, anomalies: anomalies_pb2.Anomalies) -> list[Measurement]:
    """Returns all that TFDV has measured for a kind of comparison."""
    key = "skew_measurements" if kind == "skew" else "drift_measurements"
    return [
        Measurement(
            feature=".".join(info.path.step),
            measure=_MEASURE_OF.get(item.type, "distance"),
            value=item.value,
            limit=item.threshold,
        )
        for info in anomalies.drift_skew_info
        for item in getattr(info, key)
    ]
