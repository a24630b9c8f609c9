"""Metrics of the Evaluator that count: examples per class, and predictions.

They count examples per class, and predictions by probability and by class, in one
computation. Predictions count as much as their examples weigh.

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
from dataclasses import dataclass
from typing import Any

import numpy as np
from tensorflow_model_analysis.metrics import confusion_matrix_metrics, metric_types
from tensorflow_model_analysis.metrics import (
    multi_class_confusion_matrix_metrics as confusion,
)

from components.evaluate_batches import BatchCombineFn
from components.model_verdict.settings import EFFECTIVE_EXAMPLES, EXAMPLES_PER_CLASS
from sluice.metrics import THRESHOLD

PREDICTION_HISTOGRAM = "prediction_histogram"
CONFUSION_MATRIX = "multi_class_confusion_matrix_plot"  # As TFMA's.
BUCKETS = 100
_WEIGHTS = "weights"


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

    ``CONFUSION_MATRIX``: examples by class and predicted class, as TFMA's
    ``MultiClassConfusionMatrixPlot`` writes them; of two classes at the threshold of
    the model. Again without predictions that are not finite.

    ``EFFECTIVE_EXAMPLES``: the number of equally weighted examples from which a mean is
    as uncertain as from these: the squared sum of weights by the sum of their squares.
    Source: L. Kish, Survey Sampling, 1965.

    Args:
      name: one of them.
      classes: how many classes the label has.
      prediction_key: of the probabilities among the model's outputs; None where an
        example may have several classes, for ``EXAMPLES_PER_CLASS`` alone.
      thresholds: of two classes, by the name of the model, from which on the second is
        predicted; the executor gives them to all metrics of this package.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(_computations, **given)


class OfPredictedClass(metric_types.Metric):
    """A metric of TFMA of the classes that are predicted, as scikit-learn has it.

    TFMA's takes a class for predicted where its probability is above 0.5; of two
    classes the second is predicted where its probability is at least the threshold.

    Args:
      name: of the result.
      classes: how many classes the label has.
      prediction_key: of the probabilities among the model's outputs.
      metric: TFMA's class, such as ``Precision``.
      class_id: the class that is measured against the others; None: the mean over all,
        of two classes the second.
      thresholds: see ``Count``.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(_computations, **given)

    @staticmethod
    def replaces(name: str, params: Mapping[str, Any]) -> bool:
        """Returns whether a metric would have TFMA's threshold of 0.5."""
        made: type = metric_types.registered_metrics().get(name, object)
        own = {"threshold", "thresholds", "num_thresholds", "top_k"} & params.keys()
        of_one = confusion_matrix_metrics.ConfusionMatrixMetric
        return issubclass(made, of_one) and name != "MaxRecall" and not own


def metric_config(kind: type[Any], **params: Any) -> dict[str, str]:
    """Returns the TFMA MetricConfig of a class of ours, in its JSON form."""
    names = {"class_name": kind.__name__, "module": kind.__module__}
    return {**names, "config": json.dumps(params)}


# TFMA passes only the parameters that a function names, and computes equal ones once.
def _computations(
    name: str,
    classes: int,
    prediction_key: str | None,
    metric: str | None = None,
    class_id: int | None = None,
    thresholds: Mapping[str, float] | None = None,
    model_names: Sequence[str] = ("",),
    example_weighted: bool = False,
) -> list[Any]:
    """Returns per model the computation of all counts, and what this one reads."""
    kind: Any = metric_types.MetricKey
    about: dict[str, Any] = {"example_weighted": example_weighted}
    if name == CONFUSION_MATRIX:
        kind = metric_types.PlotKey
    elif class_id is not None:
        about["sub_key"] = metric_types.SubKey(class_id=class_id)
    elif metric and classes > 2:
        about["aggregation_type"] = metric_types.AggregationType(macro_average=True)
    computations: list[Any] = []
    for model in model_names:
        threshold = (thresholds or {}).get(model, THRESHOLD) if classes == 2 else 0.0
        result: Any = functools.partial(_result, threshold)
        if metric:
            result = functools.partial(_of_classes, metric)
        counts = metric_types.MetricKey("_counts", model)  # Not written, by its name.
        key = kind(name, model, **about)
        computations += [
            metric_types.MetricComputation(
                [counts], None, _Counts(counts, classes, prediction_key, threshold)
            ),
            metric_types.DerivedMetricComputation(
                [key], functools.partial(result, key, counts, classes)
            ),
        ]
    return computations


def _of_classes(
    metric: str,
    key: metric_types.MetricKey,
    counts: metric_types.MetricKey,
    classes: int,
    values_by_key: Mapping[metric_types.MetricKey, Any],
) -> dict[metric_types.MetricKey, Any]:
    """Returns a metric of one class, or the mean over classes, from the counts.

    Of two classes it is that of the second.
    """
    matrix = np.zeros((classes, classes))
    for (name, *at), n in values_by_key[counts].items():
        if name == CONFUSION_MATRIX:
            matrix[tuple(at)] = n
    tp = matrix.diagonal()
    fp, fn = matrix.sum(axis=0) - tp, matrix.sum(axis=1) - tp
    made: Any = metric_types.registered_metrics()[metric]()
    rows = zip(tp, matrix.sum() - tp - fp - fn, fp, fn, strict=True)
    values = [made.result(*map(float, row)) for row in rows]
    only = values[key.sub_key.class_id] if key.sub_key else np.mean(values)
    only = values[1] if classes == 2 else only
    return {key: float(only)}


def _result(
    threshold: float,
    key: metric_types.MetricKey,
    counts: metric_types.MetricKey,
    classes: int,
    values_by_key: Mapping[metric_types.MetricKey, Any],
) -> dict[metric_types.MetricKey, Any]:
    """Returns the value of ``key`` from the counts."""
    known = values_by_key[counts]
    if key.name == EFFECTIVE_EXAMPLES:
        squares = known[_WEIGHTS, 2]
        return {key: known[_WEIGHTS, 1] ** 2 / squares if squares else 0.0}
    counted = [(at, n) for (name, *at), n in known.items() if name == key.name]
    if key.name == CONFUSION_MATRIX:
        entries = {confusion.MatrixEntryKey(*at): n for at, n in counted}
        value = confusion.Matrices({threshold: entries}).to_proto()
        return {key: value.multi_class_confusion_matrix_at_thresholds}
    shape = (2, BUCKETS) if key.name == PREDICTION_HISTOGRAM else (classes,)
    array = np.zeros(shape, np.array([0, *(n for _, n in counted)]).dtype)
    for at, n in counted:
        array[tuple(at)] = n
    return {key: array}


@dataclass(eq=False)
class _Counts(BatchCombineFn):
    """Counts the examples of one model, by the count's name and the array's index.

    Of weights it has the sum, and the sum of their squares.
    """

    key: metric_types.MetricKey
    classes: int
    prediction_key: str | None
    threshold: float

    def create_accumulator(self) -> Counter[Any]:
        return Counter()

    def add_input(
        self, mutable_accumulator: Counter[Any], element: Any, *_: Any, **__: Any
    ) -> Counter[Any]:
        return self.add_batch(mutable_accumulator, element, 1)

    def add_batch(
        self, accumulator: Counter[Any], batch: Any, size: int
    ) -> Counter[Any]:
        weights = np.ones(size, np.int64)
        example_weights = batch.get_example_weights(self.key.model_name)
        if example_weights is not None:
            weights = _checked_weights(example_weights, size)
            for power in (1, 2):
                accumulator[_WEIGHTS, power] += (weights**power).sum()
        if not self.classes:
            return accumulator
        labels = np.reshape(batch.get_labels(self.key.model_name), [size, -1])
        if labels.shape[1] == self.classes:
            _, found = np.nonzero(labels > 0)
            accumulator.update((EXAMPLES_PER_CLASS, label) for label in found.tolist())
            return accumulator
        labels = labels[:, 0].astype(int) if labels.size else np.array([-1])
        known = (labels >= 0) & (labels < self.classes)
        found = labels[known].tolist()
        accumulator.update((EXAMPLES_PER_CLASS, label) for label in found)
        if self.prediction_key and known.any():
            predictions = batch.get_predictions(self.key.model_name)
            if isinstance(predictions, Mapping):
                predictions = predictions.get(self.prediction_key)
            values = np.reshape(predictions, [size, -1])
            known &= np.isfinite(values).all(axis=1)
            self._add_predictions(
                accumulator, labels[known], values[known], weights[known].tolist()
            )
        return accumulator

    def _add_predictions(
        self,
        counts: Counter[Any],
        labels: np.ndarray,
        values: np.ndarray,
        weights: Sequence[Any],
    ) -> None:
        rows, probabilities = labels, values[:, -1]
        # As the served model does, in single precision.
        predicted = (probabilities >= np.float32(self.threshold)).astype(int)
        if values.shape[1] > 2:
            predicted = values.argmax(axis=1)
            rows, probabilities = (predicted == labels).astype(int), values.max(axis=1)
        pairs = zip(labels.tolist(), predicted.tolist(), weights, strict=True)
        for *pair, weight in pairs:
            counts[(CONFUSION_MATRIX, *pair)] += weight
        # In double precision 0.29 * 100 is below 29.
        buckets = (probabilities.astype(np.float32) * np.float32(BUCKETS)).astype(int)
        buckets = buckets.clip(0, BUCKETS - 1)
        for *cell, weight in zip(rows.tolist(), buckets.tolist(), weights, strict=True):
            counts[(PREDICTION_HISTOGRAM, *cell)] += weight

    def merge_accumulators(self, accumulators: Iterable[Counter[Any]]) -> Counter[Any]:
        return sum(accumulators, Counter())

    def extract_output(
        self, accumulator: Counter[Any]
    ) -> dict[metric_types.MetricKey, Counter[Any]]:
        return {self.key: accumulator}


def _checked_weights(values: Any, size: int) -> np.ndarray:
    """Returns the weights of examples.

    Raises:
      ValueError: an example does not have exactly one that is a number from 0.
    """
    weights = np.asarray(values, np.float64).ravel()
    if len(weights) != size or not ((weights >= 0) & (weights < np.inf)).all():
        raise ValueError(
            "each example needs one sample weight, a finite number from 0: correct the "
            "feature that train.sample_weight names"
        )
    return weights
