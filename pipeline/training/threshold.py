"""Chooses the probability from which on the positive class of two is predicted."""

from __future__ import annotations

import numpy as np

from pipeline.config.label import ThresholdRule
from sluice.metrics import THRESHOLD


def choose_threshold(
    rule: ThresholdRule,
    labels: np.ndarray,
    probabilities: np.ndarray,
    weights: np.ndarray,
) -> float:
    """Returns the threshold that a rule chooses, in as few digits as possible.

    It lies halfway between two probabilities, as those of the same example differ in
    the last digits between batches and devices.

    Args:
      rule: see there, also for ties and for what cannot be reached.
      labels: whether each example is positive, bool ``[N]``.
      probabilities: of the positive class, float32 ``[N]``.
      weights: of the examples, from 0, ``[N]``.
    """
    known = (weights > 0) & np.isfinite(probabilities)
    # At each threshold, all of the same probability are positive.
    values, places = np.unique(-probabilities[known], return_inverse=True)
    tp, fp = (
        np.bincount(places, weights[known] * x[known], len(values)).cumsum()
        for x in (labels, ~labels)
    )
    if not tp.any():
        return THRESHOLD
    precision = tp / (tp + fp)
    if rule.maximize:
        at = np.argmax(2 * tp / (tp + fp + tp[-1]))
    elif rule.recall_at_least is not None:
        at = np.argmax(tp / tp[-1] >= rule.recall_at_least)
    else:
        reached = np.flatnonzero(precision >= rule.precision_at_least)
        at = reached[-1] if reached.size else np.argmax(precision)
    high, low = np.append(-values, np.float32(0))[[at, at + 1]]
    middle = (float(high) + float(low)) / 2
    shorter = (float(f"{middle:.{digits}g}") for digits in range(2, 10))
    return next((x for x in shorter if low < np.float32(x) <= high), float(high))
