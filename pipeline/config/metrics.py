"""Curated list of common metrics, and which labels each fits.

With it ``sluice validate`` checks metrics without TensorFlow. Other classes of TFMA or
``tf_keras.metrics`` may be used too; ``pipeline.graph.check_metrics`` checks them when
a run is prepared.

TFMA may return a number for a metric that does not fit the label, so each of these was
run and compared: see ``tools/judge_metrics.py``, which can do so for any metric.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Task = Literal["binary", "multiclass"]


@dataclass(frozen=True)
class MetricClass:
    """Properties of a metric class.

    Attributes:
      pooled: whether TFMA, for more than two classes, pools the one-against-the-rest
        predictions of all classes, most of which are easy negatives.
      required: those of ``params`` without a default.
    """

    tasks: tuple[Task, ...]
    pooled: bool = False
    params: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


def result_name(class_name: str) -> str:
    """Returns what TFMA and Keras call the result of a class: its name in snake case.

    Source: ``to_snake_case`` of tf_keras/src/utils/generic_utils.py. TFMA's own
    ``BinaryCrossEntropy`` has the name of Keras's ``BinaryCrossentropy``.
    """
    plain = class_name.replace("CrossEntropy", "Crossentropy")
    words = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", plain)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", words).lower()


def _pooled(*params: str, required: Iterable[str] = ()) -> MetricClass:
    return MetricClass(("binary",), True, params, tuple(required))


def _at(fixed: str, *params: str) -> MetricClass:
    """Returns a metric at the threshold where another one has a value."""
    params = (fixed, *params, "num_thresholds", "class_id", "top_k")
    return _pooled(*params, required=(fixed,))


_COUNTS = ("thresholds", "top_k", "class_id")
_ANY_LABEL = MetricClass(("binary", "multiclass"))

METRICS = {
    "AUC": _pooled("num_thresholds", "curve", "summation_method", *_COUNTS),
    "AUCPrecisionRecall": _pooled("num_thresholds", "summation_method", *_COUNTS),
    "BalancedAccuracy": _pooled(*_COUNTS),
    "BinaryAccuracy": _pooled("threshold", "top_k", "class_id"),
    "BinaryCrossentropy": MetricClass(
        ("binary",), params=("from_logits", "label_smoothing")
    ),
    "Calibration": _pooled(),
    "ExampleCount": _ANY_LABEL,
    "F1Score": _pooled(*_COUNTS),
    "FNR": _pooled(*_COUNTS),
    "FPR": _pooled(*_COUNTS),
    "FalseNegatives": _pooled(*_COUNTS),
    "FalsePositives": _pooled(*_COUNTS),
    "MatthewsCorrelationCoefficient": _pooled(*_COUNTS),
    "MeanAbsoluteError": _ANY_LABEL,
    "MeanLabel": _pooled(),
    "MeanPrediction": _pooled(),
    "MeanSquaredError": _ANY_LABEL,
    "NPV": _pooled(*_COUNTS),
    "PPV": _pooled(*_COUNTS),
    "Precision": _pooled(*_COUNTS),
    "PrecisionAtRecall": _at("recall", "thresholds"),
    "Prevalence": _pooled(*_COUNTS),
    "Recall": _pooled(*_COUNTS),
    "RecallAtFalsePositiveRate": _at("false_positive_rate"),
    "RecallAtPrecision": _at("precision"),
    "RootMeanSquaredError": MetricClass(("binary",)),
    "SensitivityAtSpecificity": _at("specificity"),
    "SparseCategoricalAccuracy": MetricClass(("multiclass",)),
    "SparseCategoricalCrossentropy": MetricClass(
        ("multiclass",), params=("from_logits", "ignore_class", "axis")
    ),
    "SparseTopKCategoricalAccuracy": MetricClass(("multiclass",), params=("k",)),
    "Specificity": _pooled(*_COUNTS),
    "SpecificityAtSensitivity": _at("sensitivity"),
    "TNR": _pooled(*_COUNTS),
    "TPR": _pooled(*_COUNTS),
    "ThresholdAtRecall": _at("recall", "thresholds"),
    "TrueNegatives": _pooled(*_COUNTS),
    "TruePositives": _pooled(*_COUNTS),
    "WeightedExampleCount": _ANY_LABEL,
}
