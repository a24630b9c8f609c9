"""One difference between a reviewed schema and data, and what accepting it would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

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
    """

    feature: str
    kind: Kind
    text: str
    edits: tuple[Edit, ...] = ()
    refusal: str | None = None
    values: Mapping[str, int] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """What ``accept`` is given; the same as long as the difference is there."""
        return f"{self.feature}.{self.kind}"

    def only(self, values: Sequence[str]) -> Change:
        """Returns the part of a ``new_value`` that is about some of its values."""
        edits = tuple(
            replace(
                edit, values=tuple(item for item in edit.values if item in set(values))
            )
            if isinstance(edit, AddValues)
            else edit
            for edit in self.edits
        )
        kept = {value: self.values[value] for value in values}
        return replace(self, edits=edits, values=kept)

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
