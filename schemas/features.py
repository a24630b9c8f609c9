"""Schema properties of a feature: validated, domain."""

from __future__ import annotations

from collections.abc import Collection

from tensorflow_metadata.proto.v0 import schema_pb2

# Environments of training and serving data.
TRAINING, SERVING = "TRAINING", "SERVING"

# TFDV does not validate features in other stages.
_LIVE = {
    schema_pb2.UNKNOWN_STAGE,
    schema_pb2.BETA,
    schema_pb2.PRODUCTION,
    schema_pb2.VALIDATION_DERIVED,
}

Bounds = tuple[float | None, float | None]


def live_features(schema: schema_pb2.Schema) -> list[schema_pb2.Feature]:
    """Returns the schema's features that TFDV validates, in its order."""
    return [
        feature
        for feature in schema.feature
        if feature.lifecycle_stage in _LIVE and not feature.deprecated
    ]


def string_domain(
    feature: schema_pb2.Feature, schema: schema_pb2.Schema
) -> schema_pb2.StringDomain | None:
    """Returns the feature's inline or named string domain; None if it has neither."""
    if feature.HasField("string_domain"):
        return feature.string_domain
    named = (item for item in schema.string_domain if item.name == feature.domain)
    return next(named, None) if feature.HasField("domain") else None


def number_bounds(feature: schema_pb2.Feature) -> Bounds | None:
    """Returns the domain's minimum and maximum, None for an open end.

    None if the feature has no numeric domain.
    """
    key = feature.WhichOneof("domain_info")
    if key not in ("int_domain", "float_domain"):
        return None
    domain = getattr(feature, key)
    return (
        domain.min if domain.HasField("min") else None,
        domain.max if domain.HasField("max") else None,
    )


def without_values(
    schema: schema_pb2.Schema, sensitive: Collection[str]
) -> schema_pb2.Schema:
    """Returns a copy in which sensitive features have no domain."""
    found = schema_pb2.Schema()
    found.CopyFrom(schema)
    for feature in found.feature:
        domain = feature.WhichOneof("domain_info")
        if feature.name in sensitive and domain not in (None, "image_domain"):
            feature.ClearField(domain)
    used = {feature.domain for feature in found.feature}
    kept = [domain for domain in found.string_domain if domain.name in used]
    del found.string_domain[:]
    found.string_domain.extend(kept)
    return found
