"""The ``Evaluator`` node: TFX's component, and metrics of our own that count.

They count examples per class, and predictions by probability and by class, in one
computation.

TFMA's own metrics count one class against the rest, with a pass over the predictions
per class; its plots fail for two classes on an example without a label, and their
buckets hold ten times the numbers. TFMA finds these by module and class name. Examples
without a label (class id -1) are not counted.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_model_analysis.metrics import metric_types
from tensorflow_model_analysis.metrics import (
    multi_class_confusion_matrix_metrics as confusion,
)
from tfx.components.evaluator import component, executor
from tfx.dsl.components.base import executor_spec

from components.artifacts import Artifacts, without_absent
from components.evaluate_batches import BatchCombineFn, evaluate_batches
from components.model_verdict.threshold import EXAMPLES_PER_CLASS

PREDICTION_HISTOGRAM = "prediction_histogram"
CONFUSION_MATRIX = "multi_class_confusion_matrix_plot"  # As TFMA's.
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
            # AutoGraph would take 3 s to convert the code of Keras metrics, which run
            # eagerly; a tf.function is still converted.
            evaluate = tf.autograph.experimental.do_not_convert(super().Do)
            # TFMA calls signatures by position, which TensorFlow first refuses with a
            # TypeError whose message prints the batch: 50 ms per 1,000 small images.
            with np.printoptions(threshold=0, edgeitems=1), evaluate_batches():
                evaluate(given, output_dict, exec_properties)


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


class Count(metric_types.Metric):
    """The count of a slice that has one of the names below.

    ``EXAMPLES_PER_CLASS``: an array of the examples of each class, in the order of the
    class ids. A label is a class id, or 0 or 1 for each class; the counts below need
    class ids.

    ``PREDICTION_HISTOGRAM``: examples by the probability that was predicted for them,
    an array of two rows of ``BUCKETS`` counts. Bucket i holds probabilities from
    i / BUCKETS to below (i + 1) / BUCKETS, the last one also 1. Of two classes it is
    the probability of the second, and the rows are examples of the first and of the
    second class. Of more it is that of the predicted class, and the rows are wrong and
    right predictions. Predictions that are not finite are not counted.

    ``CONFUSION_MATRIX``: of more than two classes, examples by class and predicted
    class, as TFMA's ``MultiClassConfusionMatrixPlot`` writes them. Again without
    predictions that are not finite.

    Args:
      name: one of them.
      classes: how many classes the label has.
      prediction_key: of the probabilities among the model's outputs; None where an
        example may have several classes, for ``EXAMPLES_PER_CLASS`` alone.
    """

    def __init__(self, name: str, classes: int, prediction_key: str | None) -> None:
        super().__init__(
            _computations, name=name, classes=classes, prediction_key=prediction_key
        )

    @property
    def compute_confidence_interval(self) -> bool:
        """Never: a count is not an estimate."""
        return False


def metric_configs(
    names: Iterable[str], classes: int, prediction_key: str | None
) -> list[dict[str, str]]:
    """Returns TFMA MetricConfigs of ``Count``, in their JSON form."""
    given = {"classes": classes, "prediction_key": prediction_key}
    return [
        {
            "class_name": Count.__name__,
            "module": __name__,
            "config": json.dumps({"name": name, **given}),
        }
        for name in names
    ]


# TFMA passes only the parameters that a function names, and computes equal ones once.
def _computations(
    name: str,
    classes: int,
    prediction_key: str | None,
    model_names: Sequence[str] = ("",),
) -> list[Any]:
    """Returns per model the computation of all counts, and what this one reads."""
    kind: Any = metric_types.MetricKey
    if name == CONFUSION_MATRIX:
        kind = metric_types.PlotKey
    found: list[Any] = []
    for model in model_names:
        counts = metric_types.MetricKey("_counts", model)  # Not written, by its name.
        result = functools.partial(_result, kind(name, model), counts, classes)
        found += [
            metric_types.MetricComputation(
                [counts], None, _Counts(counts, classes, prediction_key)
            ),
            metric_types.DerivedMetricComputation([kind(name, model)], result),
        ]
    return found


def _result(
    key: metric_types.MetricKey,
    counts: metric_types.MetricKey,
    classes: int,
    found: Mapping[metric_types.MetricKey, Any],
) -> dict[metric_types.MetricKey, Any]:
    """Returns the value of ``key`` from the counts."""
    counted = [(at, n) for (name, *at), n in found[counts].items() if name == key.name]
    if key.name == CONFUSION_MATRIX:
        entries = {confusion.MatrixEntryKey(*at): n for at, n in counted}
        value = confusion.Matrices({0.0: entries}).to_proto()
        return {key: value.multi_class_confusion_matrix_at_thresholds}
    shape = (2, BUCKETS) if key.name == PREDICTION_HISTOGRAM else (classes,)
    array = np.zeros(shape, np.int64)
    for at, n in counted:
        array[tuple(at)] = n
    return {key: array}


class _Counts(BatchCombineFn):
    """Counts the examples of one model, by the count's name and the array's index."""

    def __init__(
        self, key: metric_types.MetricKey, classes: int, prediction_key: str | None
    ) -> None:
        self._key = key
        self._classes = classes
        self._prediction_key = prediction_key

    def create_accumulator(self) -> Counter[Any]:
        return Counter()

    def add_input(
        self, mutable_accumulator: Counter[Any], element: Any, *_: Any, **__: Any
    ) -> Counter[Any]:
        return self.add_batch(mutable_accumulator, element, 1)

    def add_batch(
        self, accumulator: Counter[Any], batch: Any, size: int
    ) -> Counter[Any]:
        labels = np.reshape(batch.get_labels(self._key.model_name), [size, -1])
        if labels.shape[1] == self._classes:
            _, found = np.nonzero(labels > 0)
            accumulator.update((EXAMPLES_PER_CLASS, label) for label in found.tolist())
            return accumulator
        labels = labels[:, 0].astype(int) if labels.size else np.array([-1])
        known = (labels >= 0) & (labels < self._classes)
        found = labels[known].tolist()
        accumulator.update((EXAMPLES_PER_CLASS, label) for label in found)
        if self._prediction_key and known.any():
            predictions = batch.get_predictions(self._key.model_name)
            if isinstance(predictions, Mapping):
                predictions = predictions.get(self._prediction_key)
            values = np.reshape(predictions, [size, -1])
            known &= np.isfinite(values).all(axis=1)
            self._add_predictions(accumulator, labels[known], values[known])
        return accumulator

    def _add_predictions(
        self, counts: Counter[Any], labels: np.ndarray, values: np.ndarray
    ) -> None:
        rows, probabilities = labels, values[:, -1]
        if values.shape[1] > 2:
            predicted = values.argmax(axis=1)
            rows, probabilities = (predicted == labels).astype(int), values.max(axis=1)
            pairs = zip(labels.tolist(), predicted.tolist(), strict=True)
            counts.update((CONFUSION_MATRIX, *pair) for pair in pairs)
        # In double precision 0.29 * 100 is below 29.
        buckets = (probabilities.astype(np.float32) * np.float32(BUCKETS)).astype(int)
        buckets = buckets.clip(0, BUCKETS - 1)
        cells = zip(rows.tolist(), buckets.tolist(), strict=True)
        counts.update((PREDICTION_HISTOGRAM, *cell) for cell in cells)

    def merge_accumulators(self, accumulators: Iterable[Counter[Any]]) -> Counter[Any]:
        return sum(accumulators, Counter())

    def extract_output(
        self, accumulator: Counter[Any]
    ) -> dict[metric_types.MetricKey, Counter[Any]]:
        return {self._key: accumulator}
