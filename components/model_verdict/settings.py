"""Thresholds of the model gate, as the config has them, and the node's settings."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from sluice.config_section import Count, Number, Section, SliceSpec, Text, expect

# The metric that ``min_examples_per_class`` reads; see ``components.counting_metrics``.
EXAMPLES_PER_CLASS = "examples_per_class"
# Kish's effective sample size of weighted examples, an evaluation with weights has it.
EFFECTIVE_EXAMPLES = "effective_example_count"


# As many models as were served last, of which ``over: best`` takes the best.
SERVED_MODELS = 5


class Change(Section):
    """A limit on a difference, as in TFMA.

    With `higher_is_better` the difference must be at least the limit; with
    `lower_is_better`, at most.
    """

    direction: Literal["higher_is_better", "lower_is_better"]
    """The direction in which the metric improves."""
    absolute: Number | None = None
    """Limit of candidate - baseline: -0.01 lets a metric that should be high fall by
    0.01."""
    relative: Number | None = None
    """Limit of (candidate - baseline) / |baseline|."""
    over: Literal["latest", "best"] = "latest"
    """`latest`: the baseline is the latest blessed model. `best`: the best of the last
    five, on the examples of this evaluation, so that small losses do not add up."""

    @model_validator(mode="after")
    def _has_a_limit(self) -> Change:
        if self.absolute is None and self.relative is None:
            expect("given a limit: absolute, relative or both")
        return self


class Threshold(Section):
    """A limit by at least one of the keys below `slice`."""

    metric: Text
    """The name of one of `evaluate.metrics`."""
    slice: SliceSpec = None
    """`{feature: value}`, or `[feature]` for each of its values. null: all examples."""
    lower_bound: Number | None = None
    """Minimum value, in the metric's own unit, inclusive."""
    upper_bound: Number | None = None
    """Maximum value, in the metric's own unit, inclusive."""
    better_than: Literal["reference"] | None = None
    """`reference`: better, beyond chance, than the best prediction that is the same for
    every example: the shares of the classes, the mean or the median. Not judged with
    fewer than 30 examples."""
    change: Change | None = None
    """Limit against the latest blessed model; not judged while there is none."""
    min_examples_per_class: Count | None = None
    """A slice with fewer examples of some class is not judged. null: every slice is."""

    @model_validator(mode="after")
    def _has_a_limit(self) -> Threshold:
        low, high = self.lower_bound, self.upper_bound
        if low is None and high is None and not (self.better_than or self.change):
            expect("given a limit: lower_bound, upper_bound, better_than or change")
        if low is not None and high is not None and low > high:
            expect("given a lower_bound that is not above its upper_bound")
        return self


class Settings(Section):
    """Settings of the ``ModelVerdict`` node."""

    thresholds: tuple[Threshold, ...] = ()
    classes: tuple[str, ...]
    """Class names in the order of their ids."""
    split: Text
    """The split that was evaluated; eval, if there is no test, also selected the
    model."""
