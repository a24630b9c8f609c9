"""The features of a schema that are judged: those in production."""

from __future__ import annotations

from tensorflow_metadata.proto.v0 import schema_pb2

# TFDV finds nothing wrong with features in other stages.
_LIVE = {
    schema_pb2.UNKNOWN_STAGE,
    schema_pb2.BETA,
    schema_pb2.PRODUCTION,
    schema_pb2.VALIDATION_DERIVED,
}


def live_features(schema: schema_pb2.Schema) -> list[schema_pb2.Feature]:
    """Returns the schema's features that TFDV validates, in its order."""
    return [feature for feature in schema.feature if is_live(feature)]


def is_live(feature: schema_pb2.Feature) -> bool:
    """Whether TFDV validates a feature."""
    return feature.lifecycle_stage in _LIVE and not feature.deprecated
