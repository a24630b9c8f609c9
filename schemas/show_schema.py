"""Table of a reviewed schema: one row per feature."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.diff import messages
from schemas.features import number_bounds, string_domain
from sluice.errors import MAX_EXAMPLES


@dataclass(frozen=True)
class FeatureRow:
    """One feature; columns that the schema does not define are empty.

    Attributes:
      feature: its name.
      type: ``INT``, ``FLOAT`` or ``BYTES``.
      values: number of values in a record: ``1``, ``2 x 3``, ``0 .. 5``.
      presence: required presence: ``all``, ``>= 60 %``, ``>= 1 record``.
      domain: allowed values.
      environments: that exclude it, or include it in addition: ``not SERVING``,
        ``also DEBUG``.
      comparators: limits of drift and skew.
    """

    feature: str
    type: str
    values: str
    presence: str
    domain: str
    environments: str
    comparators: str

    def to_dict(self) -> dict[str, Any]:
        """Returns the form that ``--json`` has."""
        return asdict(self)


def show_schema(
    schema: schema_pb2.Schema, sensitive: Collection[str] = ()
) -> list[FeatureRow]:
    """Returns the features in the order of the schema.

    Args:
      schema: the reviewed one.
      sensitive: features whose domain is counted, not shown.
    """
    return [
        FeatureRow(
            feature=feature.name,
            type=schema_pb2.FeatureType.Name(feature.type),
            values=_values(feature),
            presence=_presence(feature),
            domain=_domain(feature, schema, feature.name in sensitive),
            environments=_environments(feature, schema),
            comparators=_comparators(feature),
        )
        for feature in schema.feature
    ]


def _values(feature: schema_pb2.Feature) -> str:
    if feature.HasField("shape"):
        sizes = [dimension.size for dimension in feature.shape.dim]
        return " x ".join(str(size) if size > 0 else "?" for size in sizes) or "1"
    if feature.HasField("value_count"):
        count = feature.value_count
        if count.min == count.max:
            return str(count.min)
        return messages.bounds(count.min, count.max or None)
    return ""


def _presence(feature: schema_pb2.Feature) -> str:
    if feature.deprecated:
        return "deprecated"
    if feature.HasField("lifecycle_stage"):
        stage = schema_pb2.LifecycleStage.Name(feature.lifecycle_stage)
        if stage not in ("PRODUCTION", "BETA", "UNKNOWN_STAGE"):
            return stage.lower()
    if not feature.HasField("presence"):
        return ""
    fraction, count = feature.presence.min_fraction, feature.presence.min_count
    if fraction >= 1:
        return "all"
    if fraction > 0:
        return f">= {100 * fraction:.6g} %"
    return f">= {messages.plural(count, 'record')}" if count else "any"


def _domain(
    feature: schema_pb2.Feature, schema: schema_pb2.Schema, sensitive: bool
) -> str:
    kind = feature.WhichOneof("domain_info")
    if kind is None:
        return ""
    if kind in ("domain", "string_domain"):
        domain = string_domain(feature, schema) or schema_pb2.StringDomain()
        return _strings(domain, sensitive)
    if kind in ("int_domain", "float_domain"):
        return _range(feature, getattr(feature, kind), sensitive)
    return kind.removesuffix("_domain").replace("_", " ")


def _strings(domain: schema_pb2.StringDomain, sensitive: bool) -> str:
    count = len(domain.value)
    counted = messages.plural(count, "value")
    if sensitive:
        return f"{counted} (sensitive)"
    shown = ", ".join(messages.quoted(value) for value in domain.value[:MAX_EXAMPLES])
    more = f" and {count - MAX_EXAMPLES:,} more" if count > MAX_EXAMPLES else ""
    return shown + more or counted


def _range(feature: schema_pb2.Feature, domain: Any, sensitive: bool) -> str:
    low, high = number_bounds(feature) or (None, None)
    parts = []
    if low is not None or high is not None:
        parts.append("a range (sensitive)" if sensitive else messages.bounds(low, high))
    if domain.is_categorical:
        parts.append("categorical")
    if isinstance(domain, schema_pb2.FloatDomain):
        parts += ["no NaN"] * domain.disallow_nan + ["no inf"] * domain.disallow_inf
    return ", ".join(parts)


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
    found = []
    for name in ("drift", "skew"):
        comparator = getattr(feature, f"{name}_comparator")
        for kind, label in (
            ("infinity_norm", "L-infinity"),
            ("jensen_shannon_divergence", "Jensen-Shannon"),
            ("normalized_abs_difference", "normalized difference"),
        ):
            if hasattr(comparator, kind) and comparator.HasField(kind):
                threshold = getattr(comparator, kind).threshold
                found.append(f"{name} {label} <= {threshold:g}")
    return ", ".join(found)
