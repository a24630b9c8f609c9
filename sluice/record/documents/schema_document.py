"""Schema document: the features of a ``Schema`` artifact. Nothing here imports TFX."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from sluice.record.documents.damage import damage_explained
from sluice.record.json_number import json_number

MAX_FEATURES = 1000
MAX_VALUES = 100
FILE_PATTERN = "*.pbtxt"
# Stages that TFDV does not validate.
_NOT_VALIDATED = ("PLANNED", "ALPHA", "DEPRECATED", "DEBUG_ONLY", "DISABLED")
_NUMBERS = ("int_domain", "float_domain")
_MEASURES = ("infinity_norm", "jensen_shannon_divergence", "normalized_abs_difference")


def schema_document(
    directory: Path, sensitive: Collection[str] = ()
) -> dict[str, Any] | None:
    """Returns the features; None if the artifact has no schema.

    Args:
      directory: the artifact.
      sensitive: features of which no values are shown.

    Raises:
      WorkspaceError: the schema is damaged.
      OSError: the artifact cannot be read.
    """
    path = next(iter(sorted(directory.glob(FILE_PATTERN))), None)
    if path is None:
        return None
    with damage_explained("this schema", path, "a schema as TFX writes it"):
        schema = text_format.Parse(path.read_text("utf-8"), schema_pb2.Schema())
    features = list(_features(schema.feature))
    return {
        "features": [
            _describe(name, feature, schema, is_sensitive=name in sensitive)
            for name, feature in features[:MAX_FEATURES]
        ],
        "features_left_out": max(0, len(features) - MAX_FEATURES),
        "default_environments": list(schema.default_environment),
    }


def _features(features: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields each feature with its name, those of a struct after it."""
    for feature in features:
        name = f"{prefix}{feature.name}"
        yield name, feature
        yield from _features(feature.struct_domain.feature, f"{name}.")


def _describe(
    name: str, feature: Any, schema: schema_pb2.Schema, *, is_sensitive: bool
) -> dict[str, Any]:
    has = feature.HasField
    stage = schema_pb2.LifecycleStage.Name(feature.lifecycle_stage)
    fewest, most = feature.value_count.min, feature.value_count.max
    presence = feature.presence if has("presence") else None
    sizes = [item.size if item.size > 0 else None for item in feature.shape.dim]
    return {
        "name": name,
        "type": schema_pb2.FeatureType.Name(feature.type),
        "validated": stage not in _NOT_VALIDATED and not feature.deprecated,
        "shape": sizes if has("shape") else None,
        "min_values": fewest if has("value_count") else None,
        "max_values": (most or None) if has("value_count") else None,
        "min_fraction": presence.min_fraction if presence else None,
        "min_count": presence.min_count if presence else None,
        "domain": _domain(feature, schema, is_sensitive=is_sensitive),
        "sensitive": is_sensitive,
        "environments": {
            "only_in": list(feature.in_environment),
            "not_in": list(feature.not_in_environment),
        },
        "comparators": list(_comparators(feature)),
    }


def _domain(
    feature: Any, schema: schema_pb2.Schema, *, is_sensitive: bool
) -> dict[str, Any] | None:
    kind = feature.WhichOneof("domain_info")
    if kind in (None, "struct_domain"):
        return None
    domain, name = getattr(feature, kind), None
    if kind == "domain":
        kind, name = "string_domain", domain
        named = (item for item in schema.string_domain if item.name == name)
        domain = next(named, schema_pb2.StringDomain())
    fields = domain.DESCRIPTOR.fields_by_name
    values = list(domain.value) if kind == "string_domain" else []

    def bound(key: str) -> float | str | None:
        shown = key in fields and domain.HasField(key) and not is_sensitive
        return json_number(getattr(domain, key)) if shown else None

    shown = [] if is_sensitive else values[:MAX_VALUES]
    return {
        "kind": kind.removesuffix("_domain"),
        "name": name,
        "min": bound("min"),
        "max": bound("max"),
        "categorical": domain.is_categorical if kind in _NUMBERS else None,
        "values": shown if kind == "string_domain" else None,
        "values_left_out": len(values) - len(shown),
    }


def _comparators(feature: Any) -> Iterator[dict[str, Any]]:
    for check in ("drift", "skew"):
        comparator = getattr(feature, f"{check}_comparator")
        for measure in _MEASURES:
            if measure in comparator.DESCRIPTOR.fields_by_name and (
                comparator.HasField(measure)
            ):
                threshold = getattr(comparator, measure).threshold
                yield {"check": check, "measure": measure, "threshold": threshold}
