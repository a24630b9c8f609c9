"""Limits of the schema that nothing measures: silence would be taken for a pass."""

from __future__ import annotations

from tensorflow_metadata.proto.v0 import schema_pb2

from components.data_verdict.finding import Finding
from schemas.features import live_features

_IMAGE_LIMITS = ("minimum_supported_image_fraction", "max_image_byte_size")


def unmeasured_findings(schema: schema_pb2.Schema) -> list[Finding]:
    """Returns a finding for each limit that StatisticsGen measures nothing for."""
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
