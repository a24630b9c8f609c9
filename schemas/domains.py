"""What a schema says of a feature's values, wherever it says it."""

from __future__ import annotations

from tensorflow_metadata.proto.v0 import schema_pb2

Bounds = tuple[float | None, float | None]


def string_domain(
    feature: schema_pb2.Feature, schema: schema_pb2.Schema
) -> schema_pb2.StringDomain | None:
    """Returns the feature's own list of values, or the one of the schema that it names.

    None where it has neither.
    """
    if feature.HasField("string_domain"):
        return feature.string_domain
    named = (item for item in schema.string_domain if item.name == feature.domain)
    return next(named, None) if feature.HasField("domain") else None


def number_bounds(feature: schema_pb2.Feature) -> Bounds | None:
    """Returns the least and the largest number allowed, each None where it is open.

    None where the feature has no domain of numbers.
    """
    key = feature.WhichOneof("domain_info")
    if key not in ("int_domain", "float_domain"):
        return None
    domain = getattr(feature, key)
    return (
        domain.min if domain.HasField("min") else None,
        domain.max if domain.HasField("max") else None,
    )
