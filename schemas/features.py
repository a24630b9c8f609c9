"""Schema properties of a feature: validated, domain, presence."""

from __future__ import annotations

import math

from tensorflow_metadata.proto.v0 import schema_pb2

# Environments: what training and what serving data must have.
TRAINING, SERVING = "TRAINING", "SERVING"

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


_STANDARD_ERRORS = 3

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


def min_fraction(present: int, records: int) -> float:
    """Returns the least fraction of records to expect a feature in, two digits.

    Three standard errors (of a binomial share) below what was seen, for a split of a
    tenth of the records: a split is judged by itself, and is the smaller sample.

    Args:
      present: how many records have it.
      records: how many there are.
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
    """Declares how many values a feature has.

    Args:
      found: the feature.
      fewest: in a record that has it.
      most: in a record.
      always: whether every record has it.
    """
    if always and fewest == most:
        found.shape.dim.add(size=most)
        return
    # Without a shape: TensorFlow refuses a record that lacks a feature with one.
    found.value_count.min = 1
    if most <= 1:
        found.value_count.max = 1
