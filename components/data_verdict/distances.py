"""Distances between two distributions, as TFDV measures them for drift and skew."""

from __future__ import annotations

from dataclasses import dataclass

from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from components.data_verdict.anomaly_kind import COMPARISON_NAMES


@dataclass(frozen=True)
class Pair:
    """Two statistics to compare.

    Attributes:
      kind: one of ``COMPARISONS``.
      split: the split of the current data.
      against: description of the baseline.
      current: statistics of the split.
      control: statistics of the baseline.
    """

    kind: str
    split: str
    against: str
    current: statistics_pb2.DatasetFeatureStatisticsList
    control: statistics_pb2.DatasetFeatureStatisticsList

    def label(self, feature: str) -> str:
        """Returns the name of a feature's comparison in the verdict."""
        return f"{COMPARISON_NAMES[self.kind]}: {feature!r}"

    def comparator(self, feature: schema_pb2.Feature) -> schema_pb2.FeatureComparator:
        """Returns a feature's comparator in the schema; it may be empty."""
        return getattr(feature, comparator_key(self.kind))


def comparator_key(kind: str) -> str:
    """Returns the field of a schema's feature with the comparator for a kind."""
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
      measure: the kind of distance.
      value: the distance.
      limit: its limit in the schema.
    """

    feature: str
    measure: str
    value: float
    limit: float

    @property
    def share(self) -> float:
        """The distance relative to its limit; more than 1 is over the limit."""
        return self.value / self.limit if self.limit else self.value

    def __str__(self) -> str:
        return (
            f"{self.feature!r} is closest to its limit: {self.measure} "
            f"{self.value:.4g} of {self.limit:g}"
        )


def measurements(kind: str, anomalies: anomalies_pb2.Anomalies) -> list[Measurement]:
    """Returns TFDV's measurements for a kind of comparison."""
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
