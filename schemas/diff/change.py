"""One difference between a reviewed schema and data, and what accepting it would do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from schemas.diff import messages
from schemas.diff.observed import ObservedFeature
from schemas.edit.edit import AddValues, Edit

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
