"""Uncertainty of metrics, and what may be chance: one judgement for gate and page.

The Evaluator estimates 95 % intervals of its metrics by bootstrap, of shares of
examples by Wilson's formula; see ``components.bootstrap``.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluice.numbers import number_text

# The metric that holds the estimates of a slice, in JSON.
ESTIMATES = "metric_estimates"
# Of fewer examples every difference may be chance.
MIN_EXAMPLES = 30
Interval = tuple[float, float]

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

    @property
    def interval(self) -> str:
        """The bounds: ``0.9310 to 0.9770``."""
        return f"{number_text(self.low)} to {number_text(self.high)}"

    @property
    def note(self) -> str:
        """What stands beside the value: ``(0.9310 to 0.9770), 12 errors of 300``."""
        if self.errors is None:
            return f"({self.interval})"
        plural = "" if self.errors == 1 else "s"
        return f"({self.interval}), {self.errors:,} error{plural} of {self.total:,}"

    def __str__(self) -> str:
        return number_text(self.value)


def wilson(successes: float, total: float) -> tuple[float, float]:
    """Returns the 95 % interval of a share.

    Source: E. B. Wilson, Probable Inference, the Law of Succession, and Statistical
    Inference, JASA 22 (1927), without continuity correction.
    """
    share, spread = successes / total, _Z * _Z / total
    center = (share + spread / 2) / (1 + spread)
    variance = max(share * (1 - share), 0.0)
    half = math.sqrt(spread * (variance + spread / 4)) / (1 + spread)
    return max(0.0, center - half), min(1.0, center + half)


def share_of(right: float, total: float) -> Estimate | None:
    """Returns the share of right examples; None without any example."""
    if not total:
        return None
    errors = round(total - right)
    return Estimate(right / total, *wilson(right, total), errors, round(total))


def examples_of(kind: str, total: float, per_class: Sequence[float]) -> float | None:
    """Returns how many examples a metric is a share of; None if it is none.

    Args:
      kind: what TFMA calls the metric's class.
      total: the number of examples.
      per_class: how many are of each of two classes; else empty.
    """
    if kind in _OF_ALL:
        return total
    if len(per_class) == 2:
        counts = zip(per_class, (_OF_NEGATIVES, _OF_POSITIVES), strict=True)
        return next((count for count, names in counts if kind in names), None)
    return None


@dataclass(frozen=True)
class Uncertainty:
    """What is known of a metric of a slice besides its value.

    Intervals are of differences: from ``low`` at most 0 to ``high`` at least 0, to be
    added to what was measured.

    Attributes:
      value: of the same examples, or of a sample of them.
      interval: of the value.
      of: how many examples it is a share of; None if it is none.
      reference: the metric of the best constant prediction.
      gain: of the difference from ``reference``; None where a constant prediction says
        nothing of a model, as for a recall.
      sign: 1 where higher values are better, else -1.
      values: of each other model that was evaluated, on the same examples.
      changes: of the difference from each of them.
      spread: how much more ``value`` scatters than ``interval`` says: where it is of a
        sample, the interval is that of all examples.
    """

    value: float
    interval: Interval | None = None
    of: float | None = None
    reference: float | None = None
    gain: Interval | None = None
    sign: int = 1
    values: Mapping[str, float] = field(default_factory=dict)
    changes: Mapping[str, Interval | None] = field(default_factory=dict)
    spread: float = 1.0

    def is_of(self, value: float) -> bool:
        """Returns whether a value that TFMA has measured is of the same metric."""
        low, high = (x * self.spread for x in self.interval or (0.0, 0.0))
        slack = 0.01 * abs(value)
        return low - slack <= value - self.value <= high + slack

    def estimate(self, value: float) -> Estimate | None:
        """Returns the metric with its interval; None if it has none."""
        if self.interval is None:
            return None
        low, high = (value + bound for bound in self.interval)
        right = round(value * (self.of or 0))
        # Keras computes in single precision.
        if self.of and abs(value * self.of - right) <= 1e-6 * self.of:
            return Estimate(value, low, high, round(self.of - right), round(self.of))
        return Estimate(value, low, high)

    def best(self, value: float, baseline: float) -> tuple[str, float]:
        """Returns the best other model and its metric.

        Args:
          value: of the candidate, as TFMA has measured it.
          baseline: of the baseline.
        """
        measured = {x: value + y - self.value for x, y in self.values.items()}
        measured["baseline"] = baseline
        name = max(measured, key=lambda x: self.sign * measured[x])
        return name, measured[name]

    def beats_reference(self, value: float) -> bool:
        """Returns whether a value is better than the reference beyond chance."""
        if self.gain is None or self.reference is None:
            return False
        gain = value - self.reference
        return gain + self.gain[0] > 0 if self.sign > 0 else gain + self.gain[1] < 0


@dataclass(frozen=True)
class SliceEstimates:
    """What the Evaluator has estimated of the examples of a slice.

    Attributes:
      examples: how many there are.
      metrics: by name.
      predicted: how many examples each class was predicted for; empty for numbers and
        several labels.
      not_finite: how many more the model predicts NaN or infinity for.
    """

    examples: int = 0
    metrics: Mapping[str, Uncertainty] = field(default_factory=dict)
    predicted: Sequence[int] = ()
    not_finite: int = 0

    def known(self, metric: str, value: float | None) -> Uncertainty | None:
        """Returns what is known of a metric, unless ``value`` is not that of it."""
        found = self.metrics.get(metric)
        return found if found and value is not None and found.is_of(value) else None

    def estimate(self, metric: str, value: float | None) -> Estimate | None:
        """Returns a metric with its interval; None if that is not known."""
        known = self.known(metric, value)
        return None if known is None or value is None else known.estimate(value)

    @staticmethod
    def of(encoded: str) -> SliceEstimates:
        """Returns the estimates from their JSON form in base 64, as protos print it."""
        document: dict[str, Any] = json.loads(base64.b64decode(encoded))
        metrics = {x: Uncertainty(**y) for x, y in document["metrics"].items()}
        not_finite = document.get("not_finite", 0)
        counts = document["examples"], metrics, document["predicted"], not_finite
        return SliceEstimates(*counts)


def may_be_chance(delta: float, interval: Interval, examples: float) -> bool:
    """Returns whether a difference may be chance, given the interval around it."""
    low, high = interval
    return examples < MIN_EXAMPLES or low <= -delta <= high


def evaluations_may_be_equal(
    metric: str,
    before: float | None,
    after: float | None,
    old: SliceEstimates,
    new: SliceEstimates,
) -> bool:
    """Returns whether a difference between evaluations may be chance.

    They are taken for independent, as it is not known whether they are of the same
    examples. True also where an interval is unknown.

    Args:
      metric: its name.
      before: its value in one evaluation.
      after: its value in the other.
      old: the estimates of the one.
      new: the estimates of the other.
    """
    was, now = old.estimate(metric, before), new.estimate(metric, after)
    if was is None or now is None:
        return True
    low = -math.hypot(now.value - now.low, was.high - was.value)
    high = math.hypot(now.high - now.value, was.value - was.low)
    delta, examples = now.value - was.value, min(old.examples, new.examples)
    return may_be_chance(delta, (low, high), examples)


def shares_may_be_equal(before: float, after: float, total: float) -> bool:
    """Returns whether one of two shares of examples is in the interval of the other.

    Args:
      before: the number of examples.
      after: the number of examples later.
      total: of which both are shares.
    """
    pairs = (before, after), (after, before)
    bounds = [(wilson(x, total), other / total) for x, other in pairs]
    chance = any(low <= other <= high for (low, high), other in bounds)
    return total < MIN_EXAMPLES or chance


def examples_to_decide(
    value: float, interval: Interval, limit: float, examples: float
) -> float:
    """Returns of how many examples an interval would end at a limit within it."""
    bound = interval[0] if limit < value else interval[1]
    distance = abs(limit - value)
    return examples * ((bound - value) / distance) ** 2 if distance else math.inf
