"""Takes from a schema what it says of the values of sensitive features."""

from __future__ import annotations

from collections.abc import Collection

from tensorflow_metadata.proto.v0 import schema_pb2

_BOUNDS = ("min", "max")


def without_values(
    schema: schema_pb2.Schema, sensitive: Collection[str]
) -> schema_pb2.Schema:
    """Returns a copy in which sensitive features have no listed values and no bounds.

    That a number is a category, or that bytes are an image, stays.
    """
    found = schema_pb2.Schema()
    found.CopyFrom(schema)
    for feature in found.feature:
        if feature.name not in sensitive:
            continue
        for field in ("domain", "string_domain", "bool_domain"):
            feature.ClearField(field)
        for field in ("int_domain", "float_domain"):
            if feature.HasField(field):
                for bound in _BOUNDS:
                    getattr(feature, field).ClearField(bound)
    used = {feature.domain for feature in found.feature}
    kept = [domain for domain in found.string_domain if domain.name in used]
    del found.string_domain[:]
    found.string_domain.extend(kept)
    return found
