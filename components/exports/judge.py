"""Decides whether exports predict what the SavedModel predicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
    pairs = zip(exports, comparisons, strict=True)
    rows = (row for pair in pairs for row in _rows(*pair, split))
    return Verdict(GATE, tuple(rows))


def _rows(export: Export, found: Comparison, split: str) -> Iterator[Check]:
    limit = export.difference_limit(found.largest)
    if limit is not None:
        why = "largest difference from the SavedModel"
        actual, within = found.max_difference, found.max_difference <= limit
        yield Check(
            f"{found.name} difference",
            split,
            limit,
            None,
            actual,
            within,
            why,
            comparison="<=",
        )
    if found.agreement is not None:
        why = "share of examples with the class that the SavedModel predicts"
        actual, within = found.agreement, found.agreement >= export.agreement_limit
        yield Check(
            f"{found.name} agreement",
            split,
            export.agreement_limit,
            None,
            actual,
            within,
            why,
            comparison=">=",
        )
    elif limit is None:
        why = "nothing is compared without classes: set its max_difference"
        yield Check(f"{found.name} limit", split, None, None, None, False, why)
