"""Decides whether exports predict what the SavedModel predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from components.exports.settings import Export
from sluice.record.verdict import Check, Verdict

GATE = "export"


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


def judge(
    exports: Sequence[Export], comparisons: Sequence[Comparison], split: str
) -> Verdict:
    """Returns the verdict on exports, each with its comparison on a split."""
    rows = []
    for export, found in zip(exports, comparisons, strict=True):
        limit = export.difference_limit(found.largest)
        if limit is not None:
            why = "largest difference from the SavedModel"
            name, actual = f"{found.name} difference", found.max_difference
            row = Check(name, split, limit, None, actual, actual <= limit, why)
            rows.append(replace(row, comparison="<="))
        if found.agreement is not None:
            why = "share of examples with the class that the SavedModel predicts"
            name, actual = f"{found.name} agreement", found.agreement
            limit = export.agreement_limit
            row = Check(name, split, limit, None, actual, actual >= limit, why)
            rows.append(replace(row, comparison=">="))
    return Verdict(GATE, tuple(rows))
