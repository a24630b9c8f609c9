"""Differential test: a limit is met where TFMA's own validator says so."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from components.model_verdict.judge import BaselineSummary, judge
from components.model_verdict.read_evaluation import Evaluation
from components.model_verdict.settings import Settings, Threshold

pytestmark = pytest.mark.tf

# Few enough to meet a limit exactly.
VALUES = st.sampled_from([number / 10 for number in range(1, 11)])
LIMITS = st.none() | VALUES
CHANGES = st.none() | st.sampled_from([number / 10 for number in range(-5, 6)])
DIRECTIONS = st.sampled_from(["higher_is_better", "lower_is_better"])


def tfma_passes(threshold: Threshold, actual: float, before: float) -> bool:
    from tensorflow_model_analysis.evaluators import metrics_validator
    from tensorflow_model_analysis.metrics import metric_specs
    from tensorflow_model_analysis.proto import config_pb2

    spec = config_pb2.MetricsSpec(model_names=["candidate"])
    limits = spec.thresholds["auc"]
    for key in ("lower_bound", "upper_bound"):
        if (limit := getattr(threshold, key)) is not None:
            getattr(limits.value_threshold, key).value = limit
    if change := threshold.change:
        direction = getattr(config_pb2.MetricDirection, change.direction.upper())
        limits.change_threshold.direction = direction
        for key in ("absolute", "relative"):
            if (limit := getattr(change, key)) is not None:
                getattr(limits.change_threshold, key).value = limit
    models = [
        config_pb2.ModelSpec(name="candidate"),
        config_pb2.ModelSpec(name="baseline", is_baseline=True),
    ]
    config = config_pb2.EvalConfig(model_specs=models, metrics_specs=[spec])
    metrics: dict[Any, float] = {}
    keys: Any = metric_specs.metric_thresholds_from_metrics_specs([spec], config)
    for threshold_key in keys:
        metrics[threshold_key.make_baseline_key("baseline")] = before
        metrics[threshold_key] = actual - before if threshold_key.is_diff else actual
    assert metrics
    return metrics_validator.validate_metrics(((), metrics), config).validation_ok


@settings(max_examples=300, deadline=None)
@given(LIMITS, LIMITS, CHANGES, CHANGES, DIRECTIONS, VALUES, VALUES)
def test_a_limit_is_met_where_tfma_says_so(
    low, high, absolute, relative, direction, actual, before
):
    assume({low, high, absolute, relative} != {None})
    assume(low is None or high is None or low <= high)
    change = {"direction": direction, "absolute": absolute, "relative": relative}
    has_change = (absolute, relative) != (None, None)
    threshold = Threshold.model_validate(
        {
            "metric": "auc",
            "lower_bound": low,
            "upper_bound": high,
            "change": change if has_change else None,
        }
    )
    verdict = judge(
        Settings(thresholds=(threshold,), classes=("0", "1"), split="test"),
        Evaluation({(): {"auc": actual}}),
        Evaluation({(): {"auc": before}}),
        BaselineSummary(name="version 1"),
    )
    assert verdict.passed == tfma_passes(threshold, actual, before)
