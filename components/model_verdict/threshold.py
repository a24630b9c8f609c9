"""Thresholds of the model gate, in the config and as an exec property."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from sluice.config_section import Count, Number, Section, SliceSpec, Text, expect

# The metric that ``min_examples_per_class`` reads; see ``class_counts``.
EXAMPLES_PER_CLASS = "examples_per_class"


class Change(Section):
    """How far a metric may move from the latest blessed model's, as TFMA has it.

    With `higher_is_better` a difference must be at least the limit; with
    `lower_is_better`, at most.
    """

    direction: Literal["higher_is_better", "lower_is_better"] = Field(
        description="The direction in which the metric improves."
    )
    absolute: Number | None = Field(
        default=None,
        description="Limit of candidate - baseline: -0.01 lets a metric that should be "
        "high fall by 0.01.",
    )
    relative: Number | None = Field(
        default=None, description="Limit of (candidate - baseline) / |baseline|."
    )

    @model_validator(mode="after")
    def _has_a_limit(self) -> Change:
        if self.absolute is None and self.relative is None:
            expect("given a limit: absolute, relative or both")
        return self


class Threshold(Section):
    """What a metric must reach before the model is pushed.

    It has at least one of `lower_bound`, `upper_bound` and `change`.
    """

    metric: Text = Field(description="The name of one of `evaluate.metrics`.")
    slice: SliceSpec = Field(
        default=None,
        description="`{feature: value}`, or `[feature]` for each of its values. null: "
        "all examples.",
    )
    lower_bound: Number | None = Field(
        default=None, description="Minimum value, in the metric's own unit, inclusive."
    )
    upper_bound: Number | None = Field(
        default=None, description="Maximum value, in the metric's own unit, inclusive."
    )
    change: Change | None = Field(
        default=None,
        description="Limit against the latest blessed model; not judged while there is "
        "none.",
    )
    min_examples_per_class: Count | None = Field(
        default=None,
        description="A slice with fewer examples of some class is not judged. null: "
        "every slice is.",
    )

    @model_validator(mode="after")
    def _has_a_limit(self) -> Threshold:
        low, high = self.lower_bound, self.upper_bound
        if low is None and high is None and self.change is None:
            expect("given a limit: lower_bound, upper_bound or change")
        if low is not None and high is not None and low > high:
            expect("given a lower_bound that is not above its upper_bound")
        return self
