"""Runs each metric that a table names: a failure says that TFMA has changed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from sluice.metrics import FOR_NUMBERS, ONE_CLASS_ONLY, TWO_CLASSES_ONLY

pytestmark = [pytest.mark.tf, pytest.mark.acceptance]

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


# Of metrics of one class, TFMA cannot compute these of several labels.
FAIL = {
    *("BinaryIoU", "CategoricalCrossEntropy", "FBetaScore", "IoU", "MeanIoU"),
    *("MultiClassConfusionMatrixPlot", "R2Score", "SparseCategoricalAccuracy"),
    *("SparseCategoricalCrossentropy", "SparseTopKCategoricalAccuracy"),
}
# These take the most probable class for the only one: they are perfect.
MOST_PROBABLE = {
    *("CategoricalAccuracy", "OneHotIoU", "OneHotMeanIoU", "TopKCategoricalAccuracy"),
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
    values = by_output[""][""].items()
    return {key: value.get("doubleValue", 0.0) for key, value in values}


def test_of_several_classes_tfma_pools_one_against_the_rest():
    rng, classes = np.random.default_rng(1), 7
    labels = rng.integers(0, classes, 40)
    predictions = rng.dirichlet(np.ones(classes), 40).astype(np.float32)
    pooled = values_of(TWO_CLASSES_ONLY, labels, predictions)
    flat = np.eye(classes)[labels].ravel(), predictions.ravel()
    assert pooled.keys() == TWO_CLASSES_ONLY
    assert pooled == pytest.approx(values_of(TWO_CLASSES_ONLY, *flat))


def test_of_several_labels_these_fail_or_take_the_most_probable():
    labels = np.tile([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]], (5, 1))
    predictions = np.where(labels, [0.9, 0.8, 0.7, 0.6], 0.1).astype(np.float32)
    outcomes = {name: _outcome(name, labels, predictions) for name in ONE_CLASS_ONLY}
    assert {name for name, outcome in outcomes.items() if outcome is None} == FAIL
    perfect = {name for name, outcome in outcomes.items() if outcome == 1}
    assert perfect == MOST_PROBABLE


def _outcome(name: str, labels: Any, predictions: Any) -> float | None:
    """Returns what TFMA computes; None if it fails, 0 for what is no number."""
    try:
        return values_of([name], labels.astype(np.float32), predictions)[name]
    except Exception:
        return None


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
