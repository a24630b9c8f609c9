"""Types of schema edits: set a field, add values, replace a field, add a feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tensorflow_metadata.proto.v0 import schema_pb2


@dataclass(frozen=True)
class Owner:
    """A top-level message of a schema: a feature, or a named string domain."""

    kind: Literal["feature", "string_domain"]
    name: str


@dataclass(frozen=True)
class Put:
    """Sets a field.

    Attributes:
      owner: whose.
      path: from there to the field, such as ``("presence", "min_fraction")``.
      value: of the field's type; an enum's number for an enum.
    """

    owner: Owner
    path: tuple[str, ...]
    value: int | float | bool

    def message(self) -> schema_pb2.Feature:
        """Returns a feature in which only this field is set."""
        feature = schema_pb2.Feature()
        part: Any = feature
        for step in self.path[:-1]:
            part = getattr(part, step)
        setattr(part, self.path[-1], self.value)
        return feature


@dataclass(frozen=True)
class AddValues:
    """Adds values to a domain.

    Attributes:
      owner: the domain, or the feature that has it inline.
      values: new ones, each once.
    """

    owner: Owner
    values: tuple[str, ...]


@dataclass(frozen=True)
class Replace:
    """Replaces the field ``old`` of a feature by ``new``, which ``message`` has set."""

    owner: Owner
    old: str
    new: str
    message: schema_pb2.Feature


@dataclass(frozen=True)
class AddFeature:
    """Adds a feature."""

    feature: schema_pb2.Feature


Edit = Put | AddValues | Replace | AddFeature
