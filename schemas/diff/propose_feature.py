"""Proposes the declaration of a feature that a schema does not have yet."""

from __future__ import annotations

from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.scaffold.infer_schema import min_fraction, set_number_of_values
from pipeline.scaffold.summarize import FeatureSummary
from schemas.diff.observed import ObservedFeature, SplitPresence


def propose_feature(seen: ObservedFeature) -> schema_pb2.Feature:
    """Returns type, presence and number of values as they were seen.

    No domain: which of the values are right is for a person to say.

    Raises:
      ValueError: it has no type that a schema has.
    """
    found = schema_pb2.Feature(name=seen.name)
    found.type = schema_pb2.FeatureType.Value(str(seen.type))
    found.presence.min_fraction = min(map(least_fraction, seen.presence))
    if min(item.present for item in seen.presence):
        found.presence.min_count = 1
    set_number_of_values(found, seen.min_values, seen.max_values, always=seen.always)
    return found


def least_fraction(presence: SplitPresence) -> float:
    """Returns the least fraction of records to expect, as ``infer_schema`` has it."""
    return min_fraction(
        FeatureSummary("", records=presence.records, present=presence.present)
    )
