"""What is compared with what."""

from __future__ import annotations

from dataclasses import dataclass

from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

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
