"""Right and wrong predictions of each class, where an example may have several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sluice.decision_threshold import THRESHOLD
from sluice.record.json_number import json_number


def label_counts(
    classes: Sequence[str], found: Iterable[tuple[Any, Any, float]]
) -> list[dict[str, Any]]:
    """Returns of each class its examples, true and false positives, and AUC, weighted.

    They are counted at 0.5, and at the ``best`` threshold: that of the largest F1 on
    the same examples. ``auc`` and ``best`` are None where they are not defined.

    Args:
      classes: their names.
      found: the label of each example, 0 or 1 per class, the probabilities, and the
        weight.
    """
    labels, probabilities, weights = map(np.array, zip(*found, strict=True))
    columns = zip(classes, labels.T > 0, probabilities.T, strict=True)
    return [{"class": x, **_of_class(y, p, weights)} for x, y, p in columns]


def _of_class(
    labels: np.ndarray, probabilities: np.ndarray, weights: np.ndarray
) -> dict[str, Any]:
    order = np.argsort(-probabilities)
    labels, probabilities = labels[order], probabilities[order]
    weights = weights[order]
    # At each threshold, all of the same probability are positive.
    last = np.flatnonzero(np.diff(probabilities, append=-1.0))
    counts = (labels * weights, ~labels * weights)
    tp, fp = (np.append(0, x.cumsum()[last]) for x in counts)
    positives, negatives = tp[-1].item(), fp[-1].item()
    served, best = (probabilities[last] >= THRESHOLD).sum(), None
    if positives:
        i = np.argmax(2 * tp / (tp + fp + positives))
        threshold = json_number(probabilities[last[i - 1]].item())
        best = {"threshold": threshold, "tp": tp[i].item(), "fp": fp[i].item()}
    area = np.dot(np.diff(fp), tp[1:] + tp[:-1]) / 2
    return {
        "positives": positives,
        "negatives": negatives,
        "served": {"tp": tp[served].item(), "fp": fp[served].item()},
        "best": best,
        "auc": area.item() / (positives * negatives)
        if positives and negatives
        else None,
    }
