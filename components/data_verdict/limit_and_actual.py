"""Formats the ``limit`` and ``actual`` columns of a schema anomaly.

The limit comes from the schema, the actual value from the statistics. TFDV's own
description of an anomaly is a sentence.
"""

from __future__ import annotations

import math

from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

from schemas.features import number_bounds, string_domain


def describe_limit(kind: str, name: str, schema: schema_pb2.Schema) -> str | None:
    """Returns the limit that the schema sets; None if it sets none for the kind."""
    if kind == "new_feature":
        return "a feature of the schema"
    feature = next((item for item in schema.feature if item.name == name), None)
    if feature is None:
        return None
    if kind == "wrong_type":
        return schema_pb2.FeatureType.Name(feature.type)
    if kind == "missing":
        return _presence(feature.presence)
    if kind == "wrong_shape":
        return _number_of_values(feature)
    if kind == "new_value":
        return _values(feature, schema)
    if kind == "out_of_range":
        return _bounds(feature)
    return "UTF-8" if kind == "invalid_text" else None


def describe_actual(
    kind: str, stats: statistics_pb2.FeatureNameStatistics | None
) -> str | None:
    """Returns the actual value; None if the statistics have none for the kind.

    Only for ``out_of_range`` does it contain values of the data.

    Args:
      kind: of the anomaly.
      stats: of the feature; None if the data does not have it.
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
        return _span(common.min_num_values, common.max_num_values) + " values"
    if kind == "out_of_range" and which == "num_stats":
        return f"{stats.num_stats.min:.10g} to {stats.num_stats.max:.10g}"
    return None


def _presence(presence: schema_pb2.FeaturePresence) -> str | None:
    if presence.min_fraction >= 1:
        return "in all examples"
    if presence.min_fraction:
        return f"in >= {presence.min_fraction:g} of all"
    return f"in >= {presence.min_count:,} examples" if presence.min_count else None


def _number_of_values(feature: schema_pb2.Feature) -> str | None:
    if feature.HasField("shape"):
        count = math.prod(dim.size for dim in feature.shape.dim)
        return f"{count} value{'' if count == 1 else 's'}"
    if not feature.HasField("value_count"):
        return None
    least, most = feature.value_count.min, feature.value_count.max
    return f"{_span(least, most)} values" if most else f">= {least} values"


def _span(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _values(feature: schema_pb2.Feature, schema: schema_pb2.Schema) -> str | None:
    if feature.HasField("bool_domain"):
        return "true or false"
    domain = string_domain(feature, schema)
    return f"the domain's {len(domain.value)} values" if domain is not None else None


def _bounds(feature: schema_pb2.Feature) -> str | None:
    least, most = number_bounds(feature) or (None, None)
    if least is not None and most is not None:
        return f"{_number(least)} to {_number(most)}"
    if least is not None:
        return f">= {_number(least)}"
    return f"<= {_number(most)}" if most is not None else None


def _number(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:.10g}"
