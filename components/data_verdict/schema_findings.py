"""Findings from TFDV's anomalies, one per feature and kind.

TFDV's descriptions contain values of the data. Descriptions of sensitive features are
replaced here, before anything can print, log or store them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from components.data_verdict.anomaly_kind import KINDS, anomaly_kind
from components.data_verdict.finding import Finding
from components.data_verdict.limit_and_actual import describe_actual, describe_limit
from schemas.features import live_features
from sluice.printable import printable

WITHHELD = "the values are not shown, because the feature is sensitive"
_WHOLE = "whole data set"
_MAX_CHARACTERS = 300
_Stats = Mapping[str, statistics_pb2.FeatureNameStatistics]


def schema_findings(
    split: str,
    anomalies: anomalies_pb2.Anomalies,
    statistics: statistics_pb2.DatasetFeatureStatisticsList | None,
    sensitive: Collection[str] = (),
    schema: schema_pb2.Schema | None = None,
) -> list[Finding]:
    """Returns the findings of one split, by feature and in TFDV's order.

    Args:
      split: the split's name.
      anomalies: of the split.
      statistics: that the anomalies were found in.
      sensitive: features whose values are withheld.
      schema: that the statistics were validated against.
    """
    found: list[Finding] = []
    schema = schema or schema_pb2.Schema()
    by_name = features_of(statistics)
    for key, info in sorted(anomalies.anomaly_info.items()):
        name = feature_name(key, info)
        for finding in _of_feature(split, name, info, schema, by_name):
            found.append(withhold_values(finding) if name in sensitive else finding)
    if anomalies.HasField("dataset_anomaly_info"):
        info = anomalies.dataset_anomaly_info
        for reason in _reasons(info):
            kind, limit = anomaly_kind(reason.type), reason.short_description
            why = one_line(reason.description)
            found.append(Finding(kind, split, _WHOLE, why, limit=limit))
    return found


def feature_name(key: str, info: anomalies_pb2.AnomalyInfo) -> str:
    """Returns a feature's name; the key quotes names that have dots in them."""
    return ".".join(info.path.step) or key


def one_line(description: str) -> str:
    """Returns TFDV's description as one line, cut: it may list thousands of values."""
    text = printable(description.strip())
    more = len(text) - _MAX_CHARACTERS
    return (
        f"{text[:_MAX_CHARACTERS]}... ({more:,} more characters)" if more > 0 else text
    )


def _of_feature(
    split: str,
    name: str,
    info: anomalies_pb2.AnomalyInfo,
    schema: schema_pb2.Schema,
    by_name: _Stats,
) -> Iterator[Finding]:
    by_kind: dict[str, list[anomalies_pb2.AnomalyInfo.Reason]] = {}
    for reason in _reasons(info):
        by_kind.setdefault(anomaly_kind(reason.type), []).append(reason)
    # A feature with a shape must be in every example: if it is missing from some, TFDV
    # reports the shape too.
    if {"missing", "wrong_shape"} <= set(by_kind) and _fits(name, schema, by_name):
        del by_kind["wrong_shape"]
    for kind, reasons in by_kind.items():
        words = reasons[0].short_description or "as in the schema"
        yield Finding(
            kind=kind,
            split=split,
            check=f"feature {name!r}",
            why=one_line(" ".join(reason.description.strip() for reason in reasons)),
            feature=name,
            limit=describe_limit(kind, name, schema) or words,
            actual=describe_actual(kind, by_name.get(name)) or "anomaly",
        )


def withhold_values(finding: Finding) -> Finding:
    """Returns a finding without values of the data or the schema."""
    why = f"{KINDS[finding.kind]}; {WITHHELD}"
    if finding.kind == "out_of_range":
        return replace(finding, why=why, limit="the schema's range", actual="anomaly")
    return replace(finding, why=why)


def _reasons(
    info: anomalies_pb2.AnomalyInfo,
) -> list[anomalies_pb2.AnomalyInfo.Reason]:
    """Returns an anomaly's reasons; if it has none, one with its descriptions."""
    return list(info.reason) or [
        anomalies_pb2.AnomalyInfo.Reason(
            description=info.description, short_description=info.short_description
        )
    ]


def _fits(name: str, schema: schema_pb2.Schema, by_name: _Stats) -> bool:
    """Whether all examples that have a feature match its shape."""
    shapes = [item.shape for item in schema.feature if item.name == name]
    if not shapes or name not in by_name:
        return False
    found = by_name[name]
    common = getattr(found, found.WhichOneof("stats")).common_stats
    size = math.prod(dim.size for dim in shapes[0].dim)
    return {common.min_num_values, common.max_num_values} == {size}


def features_of(
    statistics: statistics_pb2.DatasetFeatureStatisticsList | None,
) -> dict[str, statistics_pb2.FeatureNameStatistics]:
    """Returns the statistics of each feature that has any, by name."""
    datasets = statistics.datasets if statistics is not None else ()
    return {
        ".".join(feature.path.step): feature
        for dataset in datasets
        for feature in dataset.features
        if feature.WhichOneof("stats")
    }


_IMAGE_LIMITS = ("minimum_supported_image_fraction", "max_image_byte_size")


def unmeasured_findings(schema: schema_pb2.Schema) -> list[Finding]:
    """Returns a finding for each limit that StatisticsGen does not measure.

    TFDV reports nothing for them, which would look like a pass.
    """
    return [
        Finding(
            kind="not_compared",
            split="overall",
            check=f"feature {feature.name!r}",
            why=f"{limit} of the schema is not measured: leave it out, and let "
            "examples.images in the config look into every image",
            feature=feature.name,
            limit="measured",
            actual=None,
        )
        for feature in live_features(schema)
        for limit in _IMAGE_LIMITS
        if getattr(feature.image_domain, limit)
    ]


def not_finite_findings(
    split: str,
    statistics: statistics_pb2.DatasetFeatureStatisticsList | None,
    schema: schema_pb2.Schema,
) -> list[Finding]:
    """Returns one finding for each feature of the schema with NaN or infinities.

    TFDV reports them only where a ``float_domain`` has ``disallow_nan: true`` or
    ``disallow_inf: true``. One NaN turns a feature's mean and all of its z-scores into
    NaN, so here they are allowed only by an explicit ``disallow_nan: false`` or
    ``disallow_inf: false``. The statistics count NaN, but not infinities.
    """
    declared = {feature.name: feature for feature in live_features(schema)}
    found = []
    for name, feature in features_of(statistics).items():
        if feature.WhichOneof("stats") != "num_stats" or name not in declared:
            continue
        seen = _seen(feature.num_stats, declared[name].float_domain)
        if seen:
            finding = Finding(
                kind="not_finite",
                split=split,
                check=f"feature {name!r}",
                why=f"holds {' and '.join(seen)}",
                feature=name,
                limit="finite numbers",
                actual=" and ".join(seen),
            )
            found.append(finding)
    return found


def _seen(
    numbers: statistics_pb2.NumericStatistics, domain: schema_pb2.FloatDomain
) -> list[str]:
    seen = []
    nan = max((histogram.num_nan for histogram in numbers.histograms), default=0)
    if nan and _forbidden(domain, "disallow_nan"):
        seen.append(f"{nan} NaN")
    if _forbidden(domain, "disallow_inf"):
        bounds = {numbers.min, numbers.max}
        seen += [text for text in ("-inf", "inf") if float(text) in bounds]
    return seen


def _forbidden(domain: schema_pb2.FloatDomain, key: str) -> bool:
    return not domain.HasField(key) or getattr(domain, key)
