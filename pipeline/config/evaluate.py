"""Config section ``evaluate``: metrics, slices and thresholds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from components.model_verdict.threshold import Threshold
from sluice.config_section import NotEmpty, Params, Section, Text, shorthand


class Metric(Section):
    """A metric that TFMA computes. `AUC` is short for `{class: AUC}`."""

    class_name: Annotated[Text, Field(alias="class")] = Field(
        description="A class of TFMA or of `tf_keras.metrics`."
    )
    name: Text | None = Field(
        default=None, description="Name of the result. null: the class's own name."
    )
    params: Params = Field(default={}, description="Arguments of the class.")


MetricSpec = Annotated[Metric, shorthand("class", Metric)]


class Evaluate(Section):
    """What is measured, on which slices, and what gates the push."""

    metrics: NotEmpty[tuple[MetricSpec, ...]] = Field(
        description="The metrics; at least one."
    )
    slices: tuple[NotEmpty[tuple[Text, ...]], ...] = Field(
        default=(),
        description="Each a list of features, whose values are crossed; all examples "
        "together are always measured.",
    )
    confidence_intervals: Annotated[bool, Field(strict=True)] = Field(
        default=False,
        description="Whether TFMA estimates 95 % confidence intervals of the metrics, "
        "by jackknife, which the page of the run shows. Evaluation takes longer: each "
        "metric is also computed without each twentieth of the examples.",
    )
    thresholds: tuple[Threshold, ...] = Field(
        default=(),
        description="Thresholds that must all be met before the model is pushed.",
    )
