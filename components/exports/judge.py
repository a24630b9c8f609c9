"""Decides whether exports predict what the SavedModel predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from components.exports.settings import Export
from sluice.record.verdict import Check, Verdict

GATE = "export"
_COST = "size, and mean time of one example by itself on this machine"
_MOST = "largest difference from the SavedModel"
_SAME = "share of examples with the class that the SavedModel predicts"


@dataclass(frozen=True)
class Comparison:
    """What an export predicts, beside the SavedModel.

    Attributes:
      name: of the export; ``saved_model`` for that itself.
      size_bytes: of its files.
      latency_ms: mean time of one example by itself; None if it was not measured.
      max_difference: the largest absolute one of a prediction.
      largest: the largest absolute prediction of the SavedModel.
      agreement: share of examples with the same predicted class; None without classes.
    """

    name: str
    size_bytes: int
    latency_ms: float | None
    max_difference: float
    largest: float
    agreement: float | None

    @property
    def cost(self) -> str:
        """Size and latency."""
        size = f"{self.size_bytes / 1000:,.0f} kB"
        return size if self.latency_ms is None else f"{size}, {self.latency_ms:.2f} ms"


def judge(
    exports: Sequence[Export], comparisons: Sequence[Comparison], split: str
) -> Verdict:
    """Returns the verdict on exports.

    Args:
      exports: what was exported.
      comparisons: of the SavedModel itself, and of each export.
      split: of the examples.
    """
    served, *others = comparisons
    rows = [Check(check="saved_model", slice=split, actual=served.cost, why=_COST)]
    for export, comparison in zip(exports, others, strict=True):
        name = comparison.name
        rows.append(Check(check=name, slice=split, actual=comparison.cost, why=_COST))
        limit = export.difference_limit(comparison.largest)
        difference = Check(
            check=f"{name} difference",
            slice=split,
            limit=limit,
            comparison=None if limit is None else "<=",
            actual=comparison.max_difference,
            why=_MOST,
        )
        agreement = Check(
            check=f"{name} agreement",
            slice=split,
            limit=export.agreement_limit,
            comparison=">=",
            actual=comparison.agreement,
            why=_SAME,
        )
        judged = (
            [difference] if comparison.agreement is None else [difference, agreement]
        )
        rows += [x if x.is_within else replace(x, result="FAIL") for x in judged]
    return Verdict(GATE, tuple(rows))
