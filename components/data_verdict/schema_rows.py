"""Rows on a split against the schema: TFDV's anomalies, one per feature and kind.

TFDV has nearly ninety anomaly types, many of them the same for different value types.
Each is mapped to one of ``settings.KINDS``; a type that a newer TFDV adds is ``other``
until it is listed here.

TFDV's descriptions contain values of the data. Descriptions of sensitive features are
replaced here, before anything can print, log or store them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from components.data_verdict.settings import KINDS, anomaly
from schemas.data_statistics import Statistics, features_of, not_finite
from schemas.loader import live_features, number_bounds, string_domain
from sluice.errors import printable
from sluice.record.verdict import Check

WITHHELD = "the values are not shown, because the feature is sensitive"
_MAX_CHARACTERS = 300
# A double represents every integer up to here.
_EXACT = 2.0**53
_TYPES = {
    "new_value": """BOOL_TYPE_BIG_INT BOOL_TYPE_SMALL_INT BOOL_TYPE_UNEXPECTED_STRING
        BOOL_TYPE_UNEXPECTED_FLOAT ENUM_TYPE_UNEXPECTED_STRING_VALUES""",
    "out_of_range": """FLOAT_TYPE_BIG_FLOAT FLOAT_TYPE_SMALL_FLOAT INT_TYPE_BIG_INT
        INT_TYPE_SMALL_INT""",
    "not_finite": "FLOAT_TYPE_HAS_NAN FLOAT_TYPE_HAS_INF",
    "invalid_text": "ENUM_TYPE_INVALID_UTF8",
    "missing": """FEATURE_TYPE_LOW_FRACTION_PRESENT FEATURE_TYPE_LOW_NUMBER_PRESENT
        FEATURE_TYPE_NOT_PRESENT FEATURE_TYPE_NO_VALUES SCHEMA_MISSING_COLUMN
        SPARSE_FEATURE_MISSING_VALUE SPARSE_FEATURE_MISSING_INDEX
        WEIGHTED_FEATURE_MISSING_VALUE WEIGHTED_FEATURE_MISSING_WEIGHT""",
    "new_feature": "SCHEMA_NEW_COLUMN",
    "wrong_type": """BOOL_TYPE_BYTES_NOT_INT BOOL_TYPE_BYTES_NOT_STRING
        BOOL_TYPE_FLOAT_NOT_INT BOOL_TYPE_FLOAT_NOT_STRING BOOL_TYPE_INT_NOT_STRING
        BOOL_TYPE_STRING_NOT_INT ENUM_TYPE_BYTES_NOT_STRING ENUM_TYPE_FLOAT_NOT_STRING
        ENUM_TYPE_INT_NOT_STRING FLOAT_TYPE_NOT_FLOAT FLOAT_TYPE_STRING_NOT_FLOAT
        FLOAT_TYPE_NON_STRING FLOAT_TYPE_UNKNOWN_TYPE_NUMBER INT_TYPE_INT_EXPECTED
        INT_TYPE_NOT_INT_STRING INT_TYPE_NOT_STRING INT_TYPE_STRING_EXPECTED
        INT_TYPE_UNKNOWN_TYPE_NUMBER STRING_TYPE_NOW_FLOAT STRING_TYPE_NOW_INT
        SEMANTIC_DOMAIN_UPDATE UNEXPECTED_DATA_TYPE""",
    "wrong_shape": """FEATURE_TYPE_HIGH_NUMBER_VALUES FEATURE_TYPE_LOW_NUMBER_VALUES
        FEATURE_TYPE_UNEXPECTED_REPEATED SPARSE_FEATURE_LENGTH_MISMATCH
        WEIGHTED_FEATURE_LENGTH_MISMATCH VALUE_NESTEDNESS_MISMATCH
        EMBEDDING_SHAPE_INVALID INVALID_FEATURE_SHAPE""",
    "not_unique": """FEATURE_TYPE_HIGH_UNIQUE FEATURE_TYPE_LOW_UNIQUE
        FEATURE_TYPE_NO_UNIQUE""",
    # Only the caller of TFDV knows which of the comparisons it was.
    "drift": """COMPARATOR_L_INFTY_HIGH COMPARATOR_JENSEN_SHANNON_DIVERGENCE_HIGH
        COMPARATOR_NORMALIZED_ABSOLUTE_DIFFERENCE_HIGH
        COMPARATOR_TREATMENT_DATA_MISSING""",
    "skew": "SCHEMA_TRAINING_SERVING_SKEW",
    "not_compared": "COMPARATOR_CONTROL_DATA_MISSING STATS_NOT_AVAILABLE",
    "count": "NO_DATA_IN_SPAN DATASET_LOW_NUM_EXAMPLES DATASET_HIGH_NUM_EXAMPLES",
    "count_change": "COMPARATOR_LOW_NUM_EXAMPLES COMPARATOR_HIGH_NUM_EXAMPLES",
}
_KIND_OF = {name: kind for kind, names in _TYPES.items() for name in names.split()}


@dataclass(frozen=True)
class _Features:
    """The features of a split, as the schema declares them and as they were measured.

    ``declared`` has only those that TFDV validates.
    """

    split: str
    schema: schema_pb2.Schema
    declared: Mapping[str, schema_pb2.Feature]
    measured: Mapping[str, statistics_pb2.FeatureNameStatistics]

    def row(self, kind: str, name: str, why: str, words: str = "measured") -> Check:
        """Returns a row with limit and actual value; ``words`` if there is no limit."""
        return anomaly(
            kind,
            self.split,
            f"feature {name!r}",
            why,
            feature=name,
            limit=_limit(kind, self.declared.get(name), self.schema) or words,
            actual=_actual(kind, self.measured.get(name)),
        )


def schema_rows(
    split: str,
    anomalies: anomalies_pb2.Anomalies,
    statistics: Statistics | None,
    schema: schema_pb2.Schema,
    sensitive: Collection[str] = (),
) -> list[Check]:
    """Returns the anomalies of one split, those of TFDV by feature.

    Args:
      split: the split's name.
      anomalies: of the split.
      statistics: that the anomalies were found in.
      schema: that the statistics were validated against.
      sensitive: features whose values are withheld.
    """
    declared = {feature.name: feature for feature in live_features(schema)}
    features = _Features(split, schema, declared, features_of(statistics))
    large, infinite = _large_integers(features), _not_finite(features)
    # TFDV's own findings about these are inexact or incomplete.
    counted = {"out_of_range": large, "not_finite": infinite}
    rows = [
        row
        for key, info in sorted(anomalies.anomaly_info.items())
        for row in _of_feature(features, feature_name(key, info), info)
        if row.feature not in counted.get(row.kind or "", ())
    ]
    rows += [*large.values(), *infinite.values()]
    rows = [withhold_values(x) if x.feature in sensitive else x for x in rows]
    for reason in anomalies.dataset_anomaly_info.reason:
        kind, limit = anomaly_kind(reason.type), reason.short_description
        why = one_line(reason.description)
        rows.append(anomaly(kind, split, "whole data set", why, limit=limit))
    return rows


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


def number_of_values(feature: schema_pb2.Feature) -> tuple[int, int | None]:
    """Returns the least and the largest number of values, None for no limit."""
    if feature.HasField("shape"):
        count = math.prod(dim.size for dim in feature.shape.dim)
        return count, count
    return feature.value_count.min, feature.value_count.max or None


def withhold_values(row: Check) -> Check:
    """Returns a row without values of the data or the schema."""
    why = f"{KINDS[row.kind or 'other']}; {WITHHELD}"
    if row.kind == "out_of_range":
        return replace(row, why=why, limit="the schema's range", actual=None)
    return replace(row, why=why)


def anomaly_kind(reason_type: int) -> str:
    """Returns the kind of one of TFDV's types (``AnomalyInfo.Type``)."""
    known = anomalies_pb2.AnomalyInfo.Type.DESCRIPTOR.values_by_number.get(reason_type)
    return _KIND_OF.get(known.name, "other") if known else "other"


def _of_feature(
    features: _Features, name: str, info: anomalies_pb2.AnomalyInfo
) -> Iterator[Check]:
    by_kind: dict[str, list[anomalies_pb2.AnomalyInfo.Reason]] = {}
    for reason in info.reason:
        by_kind.setdefault(anomaly_kind(reason.type), []).append(reason)
    # A feature with a shape must be in every example: if it is missing from some, TFDV
    # reports the shape too.
    if {"missing", "wrong_shape"} <= set(by_kind) and _fits(features, name):
        del by_kind["wrong_shape"]
    for kind, reasons in by_kind.items():
        why = one_line(" ".join(reason.description.strip() for reason in reasons))
        words = reasons[0].short_description or "as in the schema"
        yield features.row(kind, name, why, words)


def _fits(features: _Features, name: str) -> bool:
    """Whether all examples that have a feature match its shape."""
    declared, measured = features.declared.get(name), features.measured.get(name)
    if declared is None or measured is None or not declared.HasField("shape"):
        return False
    common = getattr(measured, measured.WhichOneof("stats") or "").common_stats
    return (common.min_num_values, common.max_num_values) == number_of_values(declared)


def _large_integers(features: _Features) -> dict[str, Check]:
    """Returns an anomaly for each feature with integers far outside its bounds.

    TFDV compares doubles, and converts 2^63, to which 2^63 - 1 is rounded, to a
    negative number: so 2^63 - 1, a common marker of missing values, passes every
    domain. An integer between bound and 2^53 is TFDV's to find.
    """
    rows = {}
    for name, declared in features.declared.items():
        if declared.WhichOneof("domain_info") != "int_domain":
            continue
        numbers = features.measured.get(name, _NOTHING).num_stats
        least, most = number_bounds(declared) or (None, None)
        too_low = least is not None and numbers.min < min(float(least), -_EXACT)
        too_high = most is not None and numbers.max > max(float(most), _EXACT)
        if too_low or too_high:
            why = "contains integers outside the schema's range"
            rows[name] = features.row("out_of_range", name, why)
    return rows


_NOTHING = statistics_pb2.FeatureNameStatistics()


def _not_finite(features: _Features) -> dict[str, Check]:
    """Returns a row for each feature with NaN or infinities.

    TFDV reports them only where a ``float_domain`` has ``disallow_nan: true`` or
    ``disallow_inf: true``. They are often an error and count as missing values, so here
    an explicit ``disallow_nan: false`` or ``disallow_inf: false`` allows them, which
    gives a row that passes.
    """
    rows = {}
    for name, declared in features.declared.items():
        nan, infinite = not_finite(features.measured.get(name, _NOTHING))
        counts = {"disallow_nan": (nan, "NaN"), "disallow_inf": (infinite, "infinite")}
        seen = {key: count for key, count in counts.items() if count[0]}
        if seen:
            text = " and ".join(f"{count:,} {what}" for count, what in seen.values())
            row = features.row("not_finite", name, f"holds {text}", "finite numbers")
            rows[name] = replace(row, actual=text)
            if not any(_forbidden(declared.float_domain, key) for key in seen):
                rows[name] = replace(
                    rows[name], result="pass", kind=None, limit="any number"
                )
    return rows


def _forbidden(domain: schema_pb2.FloatDomain, key: str) -> bool:
    return not domain.HasField(key) or getattr(domain, key)


def _limit(
    kind: str, feature: schema_pb2.Feature | None, schema: schema_pb2.Schema
) -> str | None:
    """Returns the limit that the schema sets; None if it sets none for the kind."""
    if kind == "new_feature":
        return "a feature of the schema"
    if feature is None:
        return None
    if kind == "wrong_type":
        return schema_pb2.FeatureType.Name(feature.type)
    if kind == "missing":
        least = feature.presence
        if least.min_fraction >= 1:
            return "in all examples"
        if least.min_fraction:
            return f"in >= {least.min_fraction:g} of all"
        return f"in >= {least.min_count:,} examples" if least.min_count else None
    if kind == "wrong_shape":
        counts = number_of_values(feature)
        return _values(*counts) if any(counts) else None
    if kind == "new_value":
        domain = string_domain(feature, schema)
        return f"the domain's {len(domain.value)} values" if domain else None
    if kind == "out_of_range" and (bounds := number_bounds(feature)):
        return _range(*bounds)
    return "UTF-8" if kind == "invalid_text" else None


def _actual(
    kind: str, stats: statistics_pb2.FeatureNameStatistics | None
) -> str | None:
    """Returns the actual value; None if the statistics have none for the kind.

    Only for ``out_of_range`` does it contain values of the data.
    """
    which = stats.WhichOneof("stats") if stats is not None else None
    if stats is None or which is None:
        return "in no example" if kind == "missing" else None
    common = getattr(stats, which).common_stats
    if kind == "missing":
        there = common.num_non_missing
        return f"in {there:,} of {there + common.num_missing:,}"
    if kind == "wrong_type":
        return statistics_pb2.FeatureNameStatistics.Type.Name(stats.type)
    if kind == "wrong_shape":
        return _values(common.min_num_values, common.max_num_values)
    if kind == "out_of_range" and which == "num_stats":
        found = stats.num_stats.min, stats.num_stats.max
        if stats.type == statistics_pb2.FeatureNameStatistics.FLOAT:
            # As short as they were before they became single precision: 0.4268.
            found = float(str(np.float32(found[0]))), float(str(np.float32(found[1])))
        return _range(*found)
    return None


def _values(least: int, most: int | None) -> str:
    text = _range(least, most)
    return f"{text} value" if text == "1" else f"{text} values"


def _range(least: float | None, most: float | None) -> str:
    low, high = (
        f"{bound:.10g}" if isinstance(bound, float) else str(bound)
        for bound in (least, most)
    )
    if least is None or most is None:
        return f"<= {high}" if least is None else f">= {low}"
    return low if least == most else f"{low} to {high}"
