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
    """Input of the rules: one feature of the schema, and what the data shows of it.

    Attributes:
      feature: in the schema.
      seen: the feature in the data.
      domain: its string domain, inline or named; None if it has none.
      sensitive: whether its values are withheld.
      required: why it must be in every record; None if it need not.
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
        """The message of the schema that contains its domain."""
        if self.feature.HasField("domain"):
            return Owner("string_domain", self.feature.domain)
        return self.owner

    @property
    def size(self) -> int | None:
        """The number of values of its shape; None if a dimension is unknown."""
        sizes = [dimension.size for dimension in self.feature.shape.dim]
        return math.prod(sizes) if all(size > 0 for size in sizes) else None

    def change(
        self, kind: Kind, text: str, *edits: Edit, refusal: str | None = None
    ) -> Change:
        """Returns a difference; a refused one has no edits."""
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
      kind: as in the data gate's rows.
      text: data and schema in one line.
      edits: that accepting it makes in the schema; none if it is refused.
      refusal: why it cannot be accepted; None if it can.
      values: of ``new_value``, the count of each, unless the feature is sensitive.
      seen: of ``new_value``, the feature in the data.
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
        """The argument of ``accept``; stable as long as the difference exists."""
        return f"{self.feature}.{self.kind}"

    def only(self, values: Collection[str]) -> Change:
        """Returns a ``new_value`` with only some of its values."""
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
