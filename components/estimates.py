"""The metric of the Evaluator that says how uncertain the others are.

It collects what a slice has of labels and predictions, and computes from them what
``components.bootstrap`` estimates.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tensorflow_model_analysis.metrics import metric_types

from components.bootstrap import Examples, MetricOfModel, estimates
from components.evaluate_batches import BatchCombineFn
from sluice.metrics import THRESHOLD
from sluice.uncertainty import ESTIMATES, MIN_EXAMPLES

# Of larger slices, examples are drawn at random.
MAX_EXAMPLES = 100_000
MAX_NUMBERS = 4_000_000
_BATCH = 1_000


class MetricEstimates(metric_types.Metric):
    """Intervals of the candidate's metrics, and the metrics of constant predictions.

    The result of a slice is bytes, the JSON form of
    ``sluice.uncertainty.SliceEstimates``.

    Args:
      metrics: the parameters of a ``MetricOfModel`` for each metric of the config.
      task: ``classification``, ``multi_label`` or ``regression``.
      classes: how many classes the label has.
      prediction_key: of the model's probabilities or numbers among its outputs.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(_computations, **given)


def _computations(
    metrics: Sequence[Mapping[str, Any]],
    task: str,
    classes: int,
    prediction_key: str,
    thresholds: Mapping[str, float] | None = None,
    model_names: Sequence[str] = ("",),
) -> list[Any]:
    # The candidate has a name only beside others.
    candidate = "candidate" if "candidate" in model_names else model_names[0]
    models = [candidate, *(name for name in model_names if name != candidate)]
    key = metric_types.MetricKey(ESTIMATES, candidate)
    given = [MetricOfModel(**item) for item in metrics]
    rows = Rows(key, given, task, classes, prediction_key, models, thresholds or {})
    return [metric_types.MetricComputation([key], None, rows)]


@dataclass
class _Sample:
    """Examples of a slice, those with the lowest of random keys.

    Attributes:
      examples: how many have been seen.
      predicted: by class, for how many of them it was predicted.
      not_finite: how many others the candidate predicts no number for.
      rows: ``[n, 2 + labels + models x predictions]``, key and weight first.
      waiting: columns of batches that are not among them yet.
      size: how many examples these have.
    """

    examples: int = 0
    predicted: Any = 0
    not_finite: int = 0
    rows: list[np.ndarray] = field(default_factory=list)
    waiting: list[list[np.ndarray]] = field(default_factory=list)
    size: int = 0

    def shrink(self, least: int = 1) -> None:
        """Keeps as many as there may be, once there are ``least`` times as many."""
        width = self.rows[0].shape[1] if self.rows else 1
        limit = min(MAX_EXAMPLES, MAX_NUMBERS // width)
        if sum(map(len, self.rows)) > limit * least:
            rows = np.concatenate(self.rows)
            self.rows = [rows[np.argpartition(rows[:, 0], limit)[:limit]]]


@dataclass(eq=False)
class Rows(BatchCombineFn):
    """Collects the examples of a slice, with the predictions of all models."""

    key: metric_types.MetricKey
    metrics: Sequence[MetricOfModel]
    task: str
    classes: int
    prediction_key: str
    models: Sequence[str]
    thresholds: Mapping[str, float]

    def create_accumulator(self) -> _Sample:
        return _Sample()

    def add_input(
        self, mutable_accumulator: _Sample, element: Any, *_: Any, **__: Any
    ) -> _Sample:
        return self.add_batch(mutable_accumulator, element, 1)

    def add_batch(self, accumulator: _Sample, batch: Any, size: int) -> _Sample:
        weights = batch.get_example_weights(self.key.model_name)
        labels = np.reshape(batch.get_labels(self.key.model_name), [size, -1])
        if not labels.size:  # None of these has a label.
            return accumulator
        weights = np.ones(size) if weights is None else np.reshape(weights, [size])
        columns = [weights, labels]
        for model in self.models:
            predictions = batch.get_predictions(model)
            if isinstance(predictions, Mapping):
                predictions = predictions.get(self.prediction_key)
            values = np.reshape(predictions, [size, -1])
            if columns[2:] and values.shape != np.shape(columns[2]):
                # Of other classes: its metrics are unknown.
                values = np.full(np.shape(columns[2]), np.nan)
            columns.append(values)
        accumulator.waiting.append(columns)
        accumulator.size += size
        if accumulator.size >= _BATCH:
            self._take(accumulator)
        return accumulator

    def _take(self, sample: _Sample) -> None:
        """Takes what is waiting: batches of slices are small."""
        if not sample.waiting:
            return
        joined = [np.concatenate(x) for x in zip(*sample.waiting, strict=True)]
        sample.waiting, sample.size = [], 0
        weights, labels, *predictions = (x.reshape(len(x), -1) for x in joined)
        known, is_finite = (
            np.isfinite(x).all(axis=1) for x in (labels, predictions[0])
        )
        sample.not_finite += int((known & ~is_finite).sum())
        known &= is_finite
        if self.task == "classification":
            known &= (labels[:, 0] >= 0) & (labels[:, 0] < self.classes)
            sample.predicted += self._predicted(predictions[0][known])
        keys = np.random.default_rng(sample.examples).random((len(known), 1))
        rows = np.hstack([keys, weights, labels, *predictions])[known]
        sample.rows.append(rows)
        sample.examples += len(rows)
        sample.shrink(least=2)

    def _split(self, rows: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Returns labels, and predictions by model."""
        _, _, *columns = rows.T
        many = {"classification": 1, "multi_label": self.classes}.get(
            self.task, len(columns) // (1 + len(self.models))
        )
        predictions = np.split(np.stack(columns[many:]).T, len(self.models), axis=1)
        labels = np.stack(columns[:many]).T
        return labels, dict(zip(self.models, predictions, strict=True))

    def _predicted(self, values: np.ndarray) -> np.ndarray:
        found = values.argmax(axis=1)
        if values.shape[1] == 1:
            threshold = self.thresholds.get(self.models[0], THRESHOLD)
            found = (values[:, 0] >= np.float32(threshold)).astype(int)
        return np.bincount(found, minlength=self.classes)

    def merge_accumulators(self, accumulators: Iterable[_Sample]) -> _Sample:
        merged = _Sample()
        for item in accumulators:
            self._take(item)
            merged.examples += item.examples
            merged.predicted += item.predicted
            merged.not_finite += item.not_finite
            merged.rows += item.rows
            merged.shrink(least=2)
        return merged

    def extract_output(
        self, accumulator: _Sample
    ) -> dict[metric_types.MetricKey, bytes]:
        self._take(accumulator)
        found: dict[str, Any] = {}
        if accumulator.examples >= MIN_EXAMPLES:
            accumulator.shrink()
            rows = np.concatenate(accumulator.rows)
            labels, predictions = self._split(rows)
            if self.task != "regression":
                labels = labels.astype(int)
            if self.task == "classification":
                labels = labels[:, 0]
            weights = rows[:, 1]
            examples = Examples(
                labels,
                predictions,
                weights if np.ptp(weights) else None,
                accumulator.examples,
                self.thresholds,
            )
            found = estimates(self.metrics, examples, self.models[0])
        document = {
            "examples": accumulator.examples,
            "metrics": found,
            "not_finite": accumulator.not_finite,
            "predicted": np.atleast_1d(accumulator.predicted).tolist()
            if self.task == "classification"
            else [],
        }
        return {self.key: json.dumps(document).encode()}
