"""One feature of a reviewed schema beside what data shows of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.diff.change import Change, Kind
from schemas.diff.observed import ObservedFeature
from schemas.edit.edit import Edit, Owner


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
