"""One threshold of the model gate, as it travels in the node's exec property."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Direction = Literal["higher_is_better", "lower_is_better"]

# The metric that ``min_examples_per_class`` looks at; see ``class_counts``.
EXAMPLES_PER_CLASS = "examples_per_class"


@dataclass(frozen=True)
class Threshold:
    """A bound on a metric, on one slice, on every value of a feature, or overall.

    Attributes:
      metric: the metric's name in the evaluation, such as ``auc``.
      slice: ``{feature: value}`` for one slice, ``[feature, ...]`` for each of its
        values, None for all examples.
      lower_bound: the metric must be at least this.
      upper_bound: the metric must be at most this.
      direction: which way is better; set if the change is limited.
      absolute: the change against the baseline must be at least as good as this, in
        the metric's unit; -0.01 with higher_is_better lets it drop by 0.01.
      relative: the same as a fraction of the baseline's value.
      min_examples_per_class: a slice with fewer of any class cannot be judged.
    """

    metric: str
    slice: dict[str, Any] | list[str] | None = None
    lower_bound: float | None = None
    upper_bound: float | None = None
    direction: Direction | None = None
    absolute: float | None = None
    relative: float | None = None
    min_examples_per_class: int | None = None
