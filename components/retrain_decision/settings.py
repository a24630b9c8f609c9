"""Config section ``retrain``: what is a reason to train again."""

from __future__ import annotations

from pydantic import model_validator

from components.model_verdict.settings import Threshold
from sluice.config_section import (
    Count,
    Fraction,
    NotEmpty,
    PositiveNumber,
    Section,
    Text,
    expect,
)

# Reasons, by their keys; `min_interval_h` is none.
_REASONS = (
    *("min_new_examples", "drift_above", "request_drift_above", "metric_drop"),
    "max_age_days",
)


class Retrain(Section):
    """When `sluice retrain` and schedules train a new model.

    Each key that is set is a reason, and any one of them suffices. Without data that is
    new to the served model nothing is a reason: the same data, config and code give the
    same model.
    """

    min_new_examples: Count | None = None
    """Number of examples in files that the served model was not trained on. null: no
    reason."""
    drift_above: Fraction | NotEmpty[dict[Text, Fraction]] | None = None
    """Distance between a feature of the train split and the same feature in the data of
    the served model, for all features or by feature; see docs/report.md for how
    distances are measured. One that chance gives with so few examples is no reason.
    null: no reason."""
    request_drift_above: Fraction | NotEmpty[dict[Text, Fraction]] | None = None
    """The same of the requests of `data.serving`. `prediction` is what the served model
    answers to recorded requests, classes and probabilities or numbers, compared with
    its answers to the split that it was judged on. null: no reason."""
    metric_drop: NotEmpty[tuple[Threshold, ...]] | None = None
    """Limits for the served model on the newest span; to miss any of them is a reason.
    `change` compares it with itself at its push, over all examples. null: no reason."""
    max_age_days: PositiveNumber | None = None
    """Age of the served version, in days. null: no reason."""
    min_interval_h: PositiveNumber | None = None
    """Hours after a push in which nothing is a reason. null: none."""

    @model_validator(mode="after")
    def _has_a_reason(self) -> Retrain:
        if all(getattr(self, key) is None for key in _REASONS):
            expect(f"given a reason: {', '.join(_REASONS)}")
        return self
