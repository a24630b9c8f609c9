"""Compares data with a reviewed schema, and proposes changes to the schema.

Only violations of the schema are differences: unused values of a domain and a presence
that could be stricter are not. The lines contain values of the data; of sensitive
features only counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.diff import messages
from schemas.diff.change import Case, Change
from schemas.diff.observed_data import ObservedData, ObservedFeature
from schemas.diff.rules import (
    invalid_text,
    missing,
    new_value,
    not_finite,
    out_of_range,
    wrong_shape,
    wrong_type,
)
from schemas.edit.edit import AddFeature
from schemas.features import (
    live_features,
    min_fraction,
    set_number_of_values,
    string_domain,
)

_RULES = (wrong_shape, missing, new_value, invalid_text, out_of_range, not_finite)


@dataclass(frozen=True)
class Expectations:
    """Requirements of the config beyond the schema.

    Attributes:
      sensitive: features whose values are withheld.
      required: why a feature must be in every record, by its name.
    """

    sensitive: Collection[str] = ()
    required: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Diff:
    """The differences.

    Attributes:
      changes: in the order of the schema, then new features.
      notes: values that could not be compared.
    """

    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()


def diff_schema(
    schema: schema_pb2.Schema, observed: ObservedData, expected: Expectations
) -> Diff:
    """Returns the differences between a schema and data.

    Args:
      schema: the reviewed one, in the environment TRAINING.
      observed: the data; without records there is no difference.
      expected: requirements of the config.
    """
    if not observed.records:
        return Diff((), ("there is no record",))
    changes: list[Change] = []
    notes = []
    for feature in live_features(schema):
        name = feature.name
        domain = string_domain(feature, schema)
        case = Case(
            feature,
            observed.features.get(name, observed.absent(name)),
            domain,
            name in expected.sensitive,
            expected.required.get(name),
        )
        changes += _changes(case)
        if domain is not None and case.seen.unlisted:
            count = messages.number(case.seen.unlisted, "value")
            notes.append(f"{name}: {count} too rare or too long to be compared")
    known = {feature.name for feature in schema.feature}
    for name, seen in observed.features.items():
        if name not in known and seen.present:
            changes.append(_new_feature(seen, name in expected.sensitive))
    return Diff(tuple(changes), tuple(notes))


def _changes(case: Case) -> Iterator[Change]:
    wrong = list(wrong_type(case))
    yield from wrong
    for rule in (missing,) if wrong else _RULES:
        yield from rule(case)


def _new_feature(seen: ObservedFeature, sensitive: bool) -> Change:
    facts = [messages.types(seen), *([] if sensitive else messages.values(seen))]
    text = f"not in the schema ({', '.join(facts)})"
    if seen.type == "STRUCT":
        return Change(seen.name, "new_feature", text, refusal=messages.NO_STRUCTS)
    return Change(seen.name, "new_feature", text, (AddFeature(_propose_feature(seen)),))


def _propose_feature(seen: ObservedFeature) -> schema_pb2.Feature:
    """Returns a feature with the observed type, presence and number of values.

    It has no domain: a person decides which values are valid.

    Raises:
      ValueError: the type does not exist in schemas.
    """
    found = schema_pb2.Feature(name=seen.name)
    found.type = schema_pb2.FeatureType.Value(str(seen.type))
    found.presence.min_fraction = min(
        min_fraction(item.present, item.records) for item in seen.presence
    )
    if min(item.present for item in seen.presence):
        found.presence.min_count = 1
    set_number_of_values(found, seen.min_values, seen.max_values, always=seen.always)
    return found
