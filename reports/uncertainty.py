"""Uncertainty of metrics: where they might lie on other data of the same size.

A metric that is a share of examples has Wilson's interval, which needs only their
number. Of all others, such as AUC and losses, TFMA estimates intervals if
``evaluate.confidence_intervals`` asks for them; else they have none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from reports.charts.svg import is_finite
from reports.evaluation import Metric

# The quantile of the normal distribution for 95 %, on both sides.
_Z = 1.959963984540054
# The examples that a metric is a share of, by TFMA's name for it.
_OF_ALL = (
    "accuracy binary_accuracy categorical_accuracy sparse_categorical_accuracy "
    "sparse_top_k_categorical_accuracy top_k_categorical_accuracy"
).split()
_OF_NEGATIVES = ("specificity", "tnr")
_OF_POSITIVES = ("recall", "tpr")


@dataclass(frozen=True)
class Estimate:
    """A metric with its 95 % interval.

    Attributes:
      value: what was measured.
      low: the lower bound.
      high: the upper bound.
      errors: how many of the examples are wrong; None for what is no share.
      total: how many examples it is a share of.
    """

    value: float
    low: float
    high: float
    errors: int | None = None
    total: int | None = None

    def contains(self, limit: float) -> bool:
        """Returns whether a limit lies within the interval."""
        return self.low <= limit <= self.high

    @property
    def interval(self) -> str:
        """The bounds, with the digits in which they differ: ``0.931 to 0.977``."""
        return f"{self._format(self.low)} to {self._format(self.high)}"

    @property
    def note(self) -> str:
        """What stands beside the value: ``(0.931 to 0.977), 12 errors of 300``."""
        if self.errors is None:
            return f"({self.interval})"
        plural = "" if self.errors == 1 else "s"
        return f"({self.interval}), {self.errors:,} error{plural} of {self.total:,}"

    def __str__(self) -> str:
        return self._format(self.value)

    def _format(self, value: float) -> str:
        width = max(self.high - self.low, 1e-9)
        least = 3 if abs(self.value) <= 1 else 0
        return f"{value:,.{max(1 - math.floor(math.log10(width)), least)}f}"


def wilson(successes: float, total: float) -> tuple[float, float]:
    """Returns the 95 % interval of a share.

    Source: E. B. Wilson, Probable Inference, the Law of Succession, and Statistical
    Inference, JASA 22 (1927), without continuity correction.
    """
    share, spread = successes / total, _Z * _Z / total
    center = (share + spread / 2) / (1 + spread)
    half = math.sqrt(spread * (share * (1 - share) + spread / 4)) / (1 + spread)
    return max(0.0, center - half), min(1.0, center + half)


def share_of(right: float, total: float) -> Estimate | None:
    """Returns the share of right examples; None without any example."""
    if not total:
        return None
    errors = round(total - right)
    return Estimate(right / total, *wilson(right, total), errors, round(total))


def estimate(
    metric: Metric,
    kinds: Collection[str],
    examples: float,
    per_class: Sequence[float],
) -> Estimate | None:
    """Returns a metric with its interval; None if it has none.

    Args:
      metric: of a slice.
      kinds: its name, and what TFMA calls it.
      examples: how many there are in the slice; of weighted ones the effective number.
      per_class: how many of each class; empty if unknown.
    """
    if metric.value is None or not is_finite(metric.value):
        return None
    total = examples if any(x in _OF_ALL for x in kinds) else 0.0
    if len(per_class) == 2:
        for count, names in zip(per_class, (_OF_NEGATIVES, _OF_POSITIVES), strict=True):
            total = count if any(x in names for x in kinds) else total
    expected = metric.value * total
    if 0 <= metric.value <= 1 and total > 0 and is_finite(expected):
        right = round(expected)
        # It is not whole if examples are weighted. Keras computes in single precision.
        if abs(expected - right) <= 1e-6 * total:
            return share_of(right, total)
    if metric.bounds and is_finite(metric.bounds[1] - metric.bounds[0]):
        return Estimate(metric.value, *metric.bounds)
    return None
