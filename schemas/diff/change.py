"""Change: one difference between a reviewed schema and data."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.diff import messages
from schemas.diff.observed_data import ObservedFeature
from schemas.edit.edit import AddValues, Edit, Owner


@dataclass(frozen=True)
class Case:
    """What the rules look at.

    Attributes:
      feature: as the schema has it.
      seen: the feature in the data.
      domain: the strings that it may be, inline or by name; None where any is right.
      sensitive: whether its values are not shown.
      required: why it must be in every record; None where it need not.
    """

    feature: schema_pb2.Feature
    seen: ObservedFeature
    domain: schema_pb2.StringDomain | None = None
    sensitive: bool = False
    required: str | None = None

    @property
    def owner(self) -> Owner:
        return Owner("feature", self.feature.name)

    @property
    def domain_owner(self) -> Owner:
        """Which message of the schema its domain is in."""
        if self.feature.HasField("domain"):
            return Owner("string_domain", self.feature.domain)
        return self.owner

    @property
    def size(self) -> int | None:
        """How many values its shape has, None where a dimension is not known."""
        sizes = [dimension.size for dimension in self.feature.shape.dim]
        return math.prod(sizes) if all(size > 0 for size in sizes) else None

    def change(
        self, kind: Kind, text: str, *edits: Edit, refusal: str | None = None
    ) -> Change:
        """Returns a difference; one that is refused has no edits."""
        return Change(self.feature.name, kind, text, () if refusal else edits, refusal)


Kind = Literal[
    "wrong_type",
    "wrong_shape",
    "missing",
    "new_value",
    "out_of_range",
    "not_finite",
    "invalid_text",
    "new_feature",
]


@dataclass(frozen=True)
class Change:
    """A difference.

    Attributes:
      feature: its name.
      kind: what differs; named as the rows of the data gate are.
      text: what the data shows and what the schema says, in one line.
      edits: what accepting it would do to the schema; none where it is refused.
      refusal: why it cannot be accepted; None where it can.
      values: of ``new_value`` how often each occurs, unless the feature is sensitive.
      seen: where there are ``values``, the feature that has them.
    """

    feature: str
    kind: Kind
    text: str
    edits: tuple[Edit, ...] = ()
    refusal: str | None = None
    values: Mapping[str, int] = field(default_factory=dict)
    seen: ObservedFeature | None = None

    @property
    def id(self) -> str:
        """What ``accept`` is given; the same as long as the difference is there."""
        return f"{self.feature}.{self.kind}"

    def only(self, values: Collection[str]) -> Change:
        """Returns the part of a ``new_value`` that is about some of its values."""
        assert self.seen is not None
        kept = {value: count for value, count in self.values.items() if value in values}
        edits = tuple(
            replace(edit, values=tuple(kept)) if isinstance(edit, AddValues) else edit
            for edit in self.edits
        )
        text = messages.new_values(kept, self.seen)
        return replace(self, text=text, edits=edits, values=kept)

    def to_dict(self) -> dict[str, Any]:
        """Returns the form that ``--json`` has."""
        return {
            "id": self.id,
            "feature": self.feature,
            "kind": self.kind,
            "text": self.text,
            "acceptable": self.refusal is None,
            "refusal": self.refusal,
            "values": dict(self.values),
        }
