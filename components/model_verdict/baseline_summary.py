"""Describes the baseline, and which newer blessed models were not used, and why.

The driver finds it out; it travels to the executor as JSON, and the verdict says it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from pydantic import TypeAdapter

from sluice.record.verdict import Check


@dataclass(frozen=True)
class SkippedModel:
    """A blessed model that is not the baseline though it is newer.

    Attributes:
      name: as people know it.
      why: such as ``damaged: held 5 files (12 bytes), now 4 files (9 bytes)``.
      retired: whether a person has decided so; false where its files are damaged.
    """

    name: str
    why: str
    retired: bool


@dataclass(frozen=True)
class BaselineSummary:
    """What the candidate is compared with.

    Attributes:
      pipeline: its name.
      name: of the baseline; None where there is none.
      is_candidate: whether the latest blessed model is the candidate itself.
      restored: the version from which its damaged files were restored.
      skipped: newer blessed models, newest first.
    """

    pipeline: str = ""
    name: str | None = None
    is_candidate: bool = False
    restored: str | None = None
    skipped: tuple[SkippedModel, ...] = ()

    @property
    def is_lost(self) -> bool:
        """Whether there is none only because files are damaged."""
        nothing = self.name is None and not self.is_candidate
        return nothing and any(not item.retired for item in self.skipped)

    @property
    def why_none(self) -> str:
        """Says why the candidate is compared with nothing."""
        if self.is_candidate:
            return "not compared: this model is the latest blessed one itself"
        if self.is_lost:
            return (
                "the baseline is lost; restore its files, or let this model be the "
                f"first: sluice models retire {self.pipeline} --damaged --reason WHY"
            )
        if self.skipped:
            return "no baseline: all models blessed before are retired"
        return "no baseline: no model was blessed before this one"

    def row(self) -> Check | None:
        """Returns the row that names the baseline, None where there is none to name."""
        if self.name is None and not self.skipped:
            return None
        skipped = [f"{item.name} is {item.why}" for item in self.skipped]
        parts = []
        if self.restored:
            parts.append(
                f"its files were once damaged, and restored from {self.restored}"
            )
        if skipped:
            stands_in = "an older model stands in: " if self.name else ""
            parts.append(stands_in + "; ".join(skipped))
        name = "this model itself" if self.is_candidate else self.name or "none"
        why = "; ".join(parts)
        return Check("baseline", "overall", None, name, None, True, why)

    def to_json(self) -> str:
        """Returns the value of the exec property."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> BaselineSummary:
        """Reads what ``to_json`` wrote."""
        return TypeAdapter(cls).validate_json(text)
