"""Runs each metric that a table names: a failure says that TFMA has changed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from pipeline.checks.metric_tables import (
    FOR_NUMBERS,
    TWO_CLASSES_ONLY,
)

pytestmark = pytest.mark.tf

PARAMS: dict[str, dict[str, Any]] = {
    "PrecisionAtRecall": {"recall": 0.5},
    "RecallAtFalsePositiveRate": {"false_positive_rate": 0.1},
    "RecallAtPrecision": {"precision": 0.5},
    "SensitivityAtSpecificity": {"specificity": 0.5},
    "SpecificityAtSensitivity": {"sensitivity": 0.5},
    "ThresholdAtRecall": {"recall": 0.5},
    "IoU": {"num_classes": 4, "target_class_ids": [1]},
    "OneHotIoU": {"num_classes": 4, "target_class_ids": [1]},
    "MeanIoU": {"num_classes": 4},
    "OneHotMeanIoU": {"num_classes": 4},
}
# Metrics of numbers that do not depend on the predictions, or on their order.
INDEPENDENT = {
    *("Calibration", "ExampleCount", "MeanLabel", "MeanPrediction"),
    "WeightedExampleCount",
}


def values_of(names: Any, labels: Any, predictions: Any) -> dict[str, float]:
    """Returns what TFMA computes, all metrics in one pass."""
    import pandas as pd
    import tensorflow_model_analysis as tfma
    from google.protobuf import json_format
    from tensorflow_model_analysis.proto import config_pb2

    metrics = [
        {
            "class_name": name,
            "config": json.dumps({"name": name, **PARAMS.get(name, {})}),
        }
        for name in names
    ]
    model = {"label_key": "label", "prediction_key": "prediction"}
    config = {"model_specs": [model], "metrics_specs": [{"metrics": metrics}]}
    frame = pd.DataFrame({"label": list(labels), "prediction": list(predictions)})
    result = tfma.analyze_raw_data(
        frame, json_format.ParseDict(config, config_pb2.EvalConfig())
    )
    ((_, by_output),) = result.slicing_metrics
    return {key: value["doubleValue"] for key, value in by_output[""][""].items()}


def test_of_several_classes_tfma_pools_one_against_the_rest():
    rng, classes = np.random.default_rng(1), 7
    labels = rng.integers(0, classes, 40)
    predictions = rng.dirichlet(np.ones(classes), 40).astype(np.float32)
    pooled = values_of(TWO_CLASSES_ONLY, labels, predictions)
    flat = np.eye(classes)[labels].ravel(), predictions.ravel()
    assert pooled.keys() == TWO_CLASSES_ONLY
    assert pooled == pytest.approx(values_of(TWO_CLASSES_ONLY, *flat))


def test_what_is_for_numbers_tells_right_from_wrong():
    rng = np.random.default_rng(1)
    labels = rng.normal(100, 20, 40)
    right = labels + rng.normal(0, 5, 40)
    values = values_of(FOR_NUMBERS, labels, right)
    others = values_of(FOR_NUMBERS, labels, right[::-1])
    assert values.keys() == FOR_NUMBERS
    assert _equal(values, others) == INDEPENDENT


def _equal(values: dict[str, float], others: dict[str, float]) -> set[str]:
    return {x for x in values if values[x] == pytest.approx(others[x], rel=1e-6)}
