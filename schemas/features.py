"""Schema properties of a feature: validated, domain, presence."""

from __future__ import annotations

import math

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


def live_features(schema: schema_pb2.Schema) -> list[schema_pb2.Feature]:
    """Returns the schema's features that TFDV validates, in its order."""
    return [feature for feature in schema.feature if is_live(feature)]


def is_live(feature: schema_pb2.Feature) -> bool:
    """Whether TFDV validates a feature."""
    return feature.lifecycle_stage in _LIVE and not feature.deprecated


_STANDARD_ERRORS = 3

Bounds = tuple[float | None, float | None]


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


def min_fraction(present: int, records: int) -> float:
    """Returns the ``min_fraction`` to propose for a feature, with two digits.

    It is three standard errors (of a binomial proportion) below the observed fraction,
    for a split with a tenth of the records, because splits are validated separately.
    """
    if 0 < records == present:
        return 1.0
    share = present / records if records else 0.0
    low = share - _STANDARD_ERRORS * math.sqrt(
        share * (1 - share) / max(records / 10, 1)
    )
    return max(0.0, math.floor(100 * min(low, 0.99)) / 100)


def set_number_of_values(
    found: schema_pb2.Feature, fewest: int, most: int, *, always: bool
) -> None:
    """Declares a feature's number of values, as shape or value count.

    Args:
      found: the feature.
      fewest: values in a record that has it.
      most: values in a record.
      always: whether every record has it.
    """
    if always and fewest == most:
        found.shape.dim.add(size=most)
        return
    # No shape: TensorFlow rejects records without a feature that has one.
    found.value_count.min = 1
    if most <= 1:
        found.value_count.max = 1
