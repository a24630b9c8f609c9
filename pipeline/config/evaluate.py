"""The part of a config that says what is measured and what gates the push."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from sluice.section import (
    Count,
    NotEmpty,
    Number,
    Params,
    Section,
    SliceSpec,
    Text,
    expect,
)


class Metric(Section):
    """A metric that TFMA computes. `AUC` is short for `{class: AUC}`."""

    class_name: Annotated[Text, Field(alias="class")] = Field(
        description="A class of TFMA or of `tf_keras.metrics`."
    )
    name: Text | None = Field(
        default=None,
        description="What the result is called. null: the class's own name.",
    )
    params: Params = Field(default={}, description="Arguments of the class.")


def _metric(value: Any) -> Any:
    return {"class": value} if isinstance(value, str) else value


MetricSpec = Annotated[
    Metric, BeforeValidator(_metric, json_schema_input_type=Text | Metric)
]


class Change(Section):
    """How far a metric may move from the latest blessed model's, as TFMA has it.

    With `higher_is_better` a difference must be at least the limit; with
    `lower_is_better`, at most.
    """

    direction: Literal["higher_is_better", "lower_is_better"] = Field(
        description="Which way the metric is better."
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

    metric: Text = Field(
        description="The name of a result: of one of `evaluate.metrics`."
    )
    slice: SliceSpec = Field(
        default=None,
        description="`{feature: value}`, or `[feature]` for each of its values. null: "
        "all examples.",
    )
    lower_bound: Number | None = Field(
        default=None, description="Least value, in the metric's own unit, inclusive."
    )
    upper_bound: Number | None = Field(
        default=None, description="Greatest value, in the metric's own unit, inclusive."
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


class Evaluate(Section):
    """What is measured, on which slices, and what gates the push."""

    metrics: NotEmpty[tuple[MetricSpec, ...]] = Field(
        description="What is measured: at least one metric."
    )
    slices: tuple[NotEmpty[tuple[Text, ...]], ...] = Field(
        default=(),
        description="Each a list of features, whose values are crossed; all examples "
        "together are always measured.",
    )
    thresholds: tuple[Threshold, ...] = Field(
        default=(),
        description="What must hold before the model is pushed: all of them.",
    )
