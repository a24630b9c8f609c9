"""Table of a reviewed schema: one row per feature."""

from __future__ import annotations

import json
from collections.abc import Collection

from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.loader import LIVE_STAGES, number_bounds, string_domain
from sluice.errors import MAX_EXAMPLES, printable


def show_schema(
    schema: schema_pb2.Schema, sensitive: Collection[str] = ()
) -> list[dict[str, str]]:
    """Returns a row per feature, in the order of the schema; as ``--json`` has them.

    Args:
      schema: the reviewed one.
      sensitive: features whose domain is counted, not shown.
    """
    return [
        {
            "feature": feature.name,
            "type": schema_pb2.FeatureType.Name(feature.type),
            "values": _values(feature),
            "presence": _presence(feature),
            "domain": _domain(feature, schema, feature.name in sensitive),
            "environments": _environments(feature, schema),
            "comparators": _comparators(feature),
        }
        for feature in schema.feature
    ]


def _values(feature: schema_pb2.Feature) -> str:
    if feature.HasField("shape"):
        sizes = [dimension.size for dimension in feature.shape.dim]
        return " x ".join(str(size) if size > 0 else "?" for size in sizes) or "1"
    if feature.HasField("value_count"):
        count = feature.value_count
        same = count.min == count.max
        return str(count.min) if same else _bounds(count.min, count.max or None)
    return ""


def _presence(feature: schema_pb2.Feature) -> str:
    if feature.deprecated:
        return "deprecated"
    if feature.lifecycle_stage not in LIVE_STAGES:
        return schema_pb2.LifecycleStage.Name(feature.lifecycle_stage).lower()
    fraction, count = feature.presence.min_fraction, feature.presence.min_count
    if fraction:
        return "all" if fraction >= 1 else f">= {100 * fraction:.6g} %"
    if count:
        return f">= {count:,} record{'' if count == 1 else 's'}"
    return "any" if feature.HasField("presence") else ""


def _domain(
    feature: schema_pb2.Feature, schema: schema_pb2.Schema, sensitive: bool
) -> str:
    kind = feature.WhichOneof("domain_info")
    if kind in ("domain", "string_domain"):
        domain = string_domain(feature, schema) or schema_pb2.StringDomain()
        count = len(domain.value)
        if sensitive or not count:
            counted = f"{count:,} value{'' if count == 1 else 's'}"
            return f"{counted} (sensitive)" if sensitive else counted
        shown = [
            printable(json.dumps(value, ensure_ascii=False))
            for value in domain.value[:MAX_EXAMPLES]
        ]
        more = f" and {count - MAX_EXAMPLES:,} more" if count > MAX_EXAMPLES else ""
        return ", ".join(shown) + more
    if kind in ("int_domain", "float_domain"):
        low, high = number_bounds(feature) or (None, None)
        domain = getattr(feature, kind)
        limited = low is not None or high is not None
        parts = ["a range (sensitive)" if sensitive else _bounds(low, high)] * limited
        parts += ["categorical"] * domain.is_categorical
        return ", ".join(parts)
    return kind.removesuffix("_domain").replace("_", " ") if kind else ""


def _bounds(low: float | None, high: float | None) -> str:
    """Returns ``0 .. 300``; an open end is left out."""
    # Schemas and data have floats of 32 bits: 42.1, not 42.099998.
    ends = [
        f"{end:.7g}" if isinstance(end, float) else str(end)
        for end in ("" if low is None else low, "" if high is None else high)
    ]
    return " .. ".join(ends).strip()


def _environments(feature: schema_pb2.Feature, schema: schema_pb2.Schema) -> str:
    # In TFDV in_environment takes precedence over not_in_environment.
    named = set(feature.in_environment)
    excluded = [name for name in feature.not_in_environment if name not in named]
    defaults = schema.default_environment
    added = [name for name in feature.in_environment if name not in defaults]
    parts = [f"not {', '.join(excluded)}"] * bool(excluded)
    parts += [f"also {', '.join(added)}"] * bool(added)
    return ", ".join(parts)


def _comparators(feature: schema_pb2.Feature) -> str:
    return ", ".join(
        f"{name} {field.name} <= {norm.threshold:g}"
        for name in ("drift", "skew")
        for field, norm in getattr(feature, f"{name}_comparator").ListFields()
    )
