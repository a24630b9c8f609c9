"""The ``Evaluator`` node: TFX's component, and two metrics of our own that count.

The metrics count examples per class, and predictions by probability.

TFMA's own metrics count one class against the rest, with a pass over the predictions
per class; its plots fail for two classes on an example without a label, and their
buckets hold ten times the numbers. TFMA finds these by module and class name. Examples
without a label (class id -1) are not counted.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.metrics import metric_types
from tfx.components.evaluator import component, executor
from tfx.dsl.components.base import executor_spec

from components.artifacts import Artifacts, without_absent
from components.model_verdict.threshold import EXAMPLES_PER_CLASS

PREDICTION_HISTOGRAM = "prediction_histogram"
BUCKETS = 100


class Executor(executor.Executor):
    """TFX's executor, for which a baseline that stands for none is left out.

    Where a resolver finds no model, it evaluates nothing.
    """

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Any
    ) -> None:
        given = without_absent(input_dict)
        if given.get("model", True):
            super().Do(given, output_dict, exec_properties)


class Evaluator(component.Evaluator):
    """TFX's Evaluator; inputs, outputs and parameters are TFX's own.

    Example::

        evaluator = Evaluator(
            examples=example_gen.outputs["examples"],
            model=trainer.outputs["model"],
            baseline_model=resolver.outputs["model"],
            eval_config=eval_config,
        )
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)


class _CountMetric(metric_types.Metric):
    """A metric whose value on a slice is an array of counts."""

    @property
    def compute_confidence_interval(self) -> bool:
        """Never: a count is not an estimate."""
        return False


class ExamplesPerClass(_CountMetric):
    """Counts the examples of each class, in the order of the class ids.

    A label is a class id, or 0 or 1 for each class.
    """

    def __init__(self, classes: int, name: str = EXAMPLES_PER_CLASS) -> None:
        super().__init__(_count_classes, classes=classes, name=name)


class PredictionHistogram(_CountMetric):
    """Counts examples by the probability that was predicted for them.

    Its value is an array of two rows of ``BUCKETS`` counts. Bucket i holds
    probabilities from i / BUCKETS to below (i + 1) / BUCKETS, the last one also 1. Of
    two classes it is the probability of the second, and the rows are examples of the
    first and of the second class. Of more it is that of the predicted class, and the
    rows are wrong and right predictions. Predictions that are not finite are not
    counted.
    """

    def __init__(self, prediction_key: str, name: str = PREDICTION_HISTOGRAM) -> None:
        super().__init__(_count_predictions, prediction_key=prediction_key, name=name)


def metric_configs(classes: int, prediction_key: str | None) -> list[dict[str, str]]:
    """Returns the TFMA MetricConfigs of both, in their JSON form.

    Args:
      classes: how many classes the label has.
      prediction_key: of the probabilities among the model's outputs; None where an
        example may have several classes, for ``ExamplesPerClass`` alone.
    """
    arguments: dict[type, dict[str, Any]] = {ExamplesPerClass: {"classes": classes}}
    if prediction_key:
        arguments[PredictionHistogram] = {"prediction_key": prediction_key}
    return [
        {
            "class_name": metric.__name__,
            "module": __name__,
            "config": json.dumps(given),
        }
        for metric, given in arguments.items()
    ]


# TFMA passes only the parameters that a function names.
def _count_classes(
    classes: int, name: str, model_names: Sequence[str] = ("",)
) -> list[metric_types.MetricComputation]:
    combiner = functools.partial(_CountClasses, shape=classes)
    return _computations(name, combiner, model_names)


def _count_predictions(
    prediction_key: str, name: str, model_names: Sequence[str] = ("",)
) -> list[metric_types.MetricComputation]:
    combiner = functools.partial(_CountPredictions, prediction_key=prediction_key)
    return _computations(name, combiner, model_names)


def _computations(
    name: str, combiner: Any, model_names: Sequence[str]
) -> list[metric_types.MetricComputation]:
    """Returns one computation per model."""
    wanted: Any = {constants.LABELS_KEY: {}, constants.PREDICTIONS_KEY: {}}
    inputs = metric_types.StandardMetricInputsPreprocessor(
        include_filter=wanted, include_default_inputs=False
    )
    return [
        metric_types.MetricComputation([key], [inputs], combiner(key))
        for key in (metric_types.MetricKey(name, model) for model in model_names)
    ]


class _Count(beam.CombineFn):
    """Counts examples of one model in an array."""

    def __init__(self, key: metric_types.MetricKey, shape: Any) -> None:
        self._key = key
        self._shape = shape

    def create_accumulator(self) -> np.ndarray:
        return np.zeros(self._shape, np.int64)

    def merge_accumulators(self, accumulators: Iterable[np.ndarray]) -> np.ndarray:
        return sum(accumulators, self.create_accumulator())

    def extract_output(
        self, accumulator: np.ndarray
    ) -> dict[metric_types.MetricKey, np.ndarray]:
        return {self._key: accumulator}


class _CountClasses(_Count):
    def add_input(
        self, mutable_accumulator: np.ndarray, element: Any, *_: Any, **__: Any
    ) -> np.ndarray:
        labels = np.ravel(element.get_labels(self._key.model_name))
        if labels.size == self._shape:
            mutable_accumulator += (labels > 0).astype(np.int64)
            return mutable_accumulator
        known = labels[(labels >= 0) & (labels < self._shape)]
        np.add.at(mutable_accumulator, known.astype(np.int64), 1)
        return mutable_accumulator


class _CountPredictions(_Count):
    def __init__(self, key: metric_types.MetricKey, prediction_key: str) -> None:
        super().__init__(key, (2, BUCKETS))
        self._prediction_key = prediction_key

    def add_input(
        self, mutable_accumulator: np.ndarray, element: Any, *_: Any, **__: Any
    ) -> np.ndarray:
        predictions = element.get_predictions(self._key.model_name)
        if isinstance(predictions, Mapping):
            predictions = predictions.get(self._prediction_key)
        (label, *_) = np.ravel(element.get_labels(self._key.model_name)).tolist()
        values = np.ravel(predictions)
        if label < 0 or not np.isfinite(values).all():
            return mutable_accumulator
        if values.size > 2:
            predicted = int(values.argmax())
            row, probability = int(predicted == label), values[predicted]
        else:
            row, probability = int(label), values[-1]
        # In double precision 0.29 * 100 is below 29.
        bucket = int(np.floor(np.float32(probability) * np.float32(BUCKETS)))
        mutable_accumulator[row, min(max(bucket, 0), BUCKETS - 1)] += 1
        return mutable_accumulator
