"""What TFDV found wrong with a split, one finding for each feature and kind.

TFDV puts values of the data into its descriptions. Those of sensitive features are
replaced here, before anything can print, log or store them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tensorflow_metadata.proto.v0 import anomalies_pb2, statistics_pb2

from components.data_verdict.anomaly_kind import KINDS, anomaly_kind
from components.data_verdict.finding import Finding

WITHHELD = "the values are not shown, because the feature is sensitive"
_WHOLE = "whole data set"


def schema_findings(
    split: str,
    anomalies: anomalies_pb2.Anomalies,
    statistics: statistics_pb2.DatasetFeatureStatisticsList | None,
    sensitive: Collection[str] = (),
) -> list[Finding]:
    """Returns the findings of one split, by feature and in TFDV's order.

    Args:
      split: the split's name.
      anomalies: what TFDV wrote about it.
      statistics: what it was judged by.
      sensitive: features whose values are not told.
    """
    found: list[Finding] = []
    for key, info in sorted(anomalies.anomaly_info.items()):
        name = feature_name(key, info)
        found += _of_feature(split, name, info, name in sensitive, statistics)
    if anomalies.HasField("dataset_anomaly_info"):
        info = anomalies.dataset_anomaly_info
        for reason in _reasons(info):
            kind, limit = anomaly_kind(reason.type), reason.short_description
            found.append(Finding(kind, split, _WHOLE, reason.description, limit=limit))
    return found


def feature_name(key: str, info: anomalies_pb2.AnomalyInfo) -> str:
    """Returns a feature's name; the key quotes names that have dots in them."""
    return ".".join(info.path.step) or key


def _of_feature(
    split: str,
    name: str,
    info: anomalies_pb2.AnomalyInfo,
    withheld: bool,
    statistics: statistics_pb2.DatasetFeatureStatisticsList | None,
) -> Iterator[Finding]:
    by_kind: dict[str, list[anomalies_pb2.AnomalyInfo.Reason]] = {}
    for reason in _reasons(info):
        by_kind.setdefault(anomaly_kind(reason.type), []).append(reason)
    # A feature with a shape must be in every example: if it is missing from some, TFDV
    # reports the shape too.
    if {"missing", "wrong_shape"} <= set(by_kind) and _is_even(name, statistics):
        del by_kind["wrong_shape"]
    for kind, reasons in by_kind.items():
        described = " ".join(reason.description.strip() for reason in reasons)
        yield Finding(
            kind=kind,
            split=split,
            check=f"feature {name!r}",
            why=f"{KINDS[kind]}; {WITHHELD}" if withheld else described,
            feature=name,
            limit=reasons[0].short_description or "as in the schema",
        )


def _reasons(
    info: anomalies_pb2.AnomalyInfo,
) -> list[anomalies_pb2.AnomalyInfo.Reason]:
    """Returns an anomaly's reasons; one made of its texts if it lists none."""
    return list(info.reason) or [
        anomalies_pb2.AnomalyInfo.Reason(
            description=info.description, short_description=info.short_description
        )
    ]


def _is_even(
    name: str, statistics: statistics_pb2.DatasetFeatureStatisticsList | None
) -> bool:
    """Whether the examples that have a feature all have as many values."""
    for feature in features_of(statistics):
        if ".".join(feature.path.step) == name:
            common = getattr(feature, feature.WhichOneof("stats")).common_stats
            return common.min_num_values == common.max_num_values
    return False


def features_of(
    statistics: statistics_pb2.DatasetFeatureStatisticsList | None,
) -> list[statistics_pb2.FeatureNameStatistics]:
    """Returns the statistics of each feature that has any."""
    datasets = statistics.datasets if statistics is not None else ()
    return [
        feature
        for dataset in datasets
        for feature in dataset.features
        if feature.WhichOneof("stats")
    ]
