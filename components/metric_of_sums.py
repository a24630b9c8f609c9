"""Metrics as functions of sums over examples, so that a resample is a product.

AUC and the area under precision and recall are of ranks in bins; metrics of a confusion
matrix are TFMA's own, means over examples Keras's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sluice.metrics import MEASURES_A_MODEL, direction_of

MAX_CLASSES = 100  # Of a mean over classes, each of which is ranked by itself.
AREAS = ("auc", "auc_precision_recall")
_BINS = 100
_SCALARS = 10  # Sums of a metric that is no area.

_Array = np.ndarray
_Of = Callable[[_Array], _Array]


@dataclass(frozen=True)
class MetricOfModel:
    """A metric of the config.

    Attributes:
      name: of its result.
      kind: what TFMA calls the class, see ``sluice.metrics.result_name``.
      class_name: of Keras or TFMA.
      params: of the class.
      is_macro: whether it is the mean over classes.
      target: index of the number that it is of, of several per example.
    """

    name: str
    kind: str
    class_name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    is_macro: bool = False
    target: int | None = None

    @property
    def measures_a_model(self) -> bool:
        """Whether a constant prediction tells if a model has learned anything."""
        is_known = self.is_macro and direction_of(self.kind) is not None
        return is_known or self.kind in MEASURES_A_MODEL


@dataclass(frozen=True)
class _Part:
    """A metric as a function of weighted sums.

    Attributes:
      added: columns and amounts, ``[n]`` or ``[n, k]``, that each example adds.
      width: the number of columns.
      value: from sums ``[draws, width]`` to metrics ``[draws]``.
    """

    added: Sequence[tuple[Any, Any]]
    width: int
    value: _Of

    def values(self, draws: _Array, groups: _Array, weights: _Array) -> _Array:
        """Returns the metric of each draw, a row of how often each group is taken."""
        size = draws.shape[1] * self.width
        sums = np.zeros(size)
        for column, amount in self.added:
            amounts = np.asarray(amount, float).T * weights
            places = groups * self.width + np.asarray(column).T
            shape = np.broadcast_shapes(amounts.shape, places.shape)
            pair = (places, amounts)
            index, added = (np.broadcast_to(x, shape).ravel() for x in pair)
            sums += np.bincount(index, added, size)
        # Single precision is enough for an area, and twice as fast.
        kind: Any = np.float32 if self.width > _SCALARS else np.float64
        matrix = sums.reshape(-1, self.width).astype(kind)
        return self.value((draws.astype(kind) @ matrix).astype(float))


def metric_values(
    metric: MetricOfModel,
    labels: _Array,
    predictions: _Array,
    threshold: float,
    weights: _Array,
    groups: _Array,
    draws: _Array,
) -> _Array | None:
    """Returns a metric of each draw; None if it is not known here.

    Args:
      metric: of the config.
      labels: as ``components.bootstrap.Examples`` has them.
      predictions: likewise, of a model.
      threshold: of two classes, from which on the second is predicted.
      weights: of the examples, ``[n]``.
      groups: of the examples, ``[n]``.
      draws: how often each draw takes each group, ``[draws, groups]``.
    """
    parts = _parts(metric, labels, predictions, threshold)
    if not parts:
        return None
    with np.errstate(all="ignore"):
        each = [part.values(draws, groups, weights) for part in parts]
    # As TFMA's, a class without examples has 0 in a mean over classes.
    return np.nan_to_num(each).mean(axis=0) if metric.is_macro else each[0]


def _parts(
    metric: MetricOfModel, labels: _Array, predictions: _Array, threshold: float
) -> list[_Part] | None:
    """Returns the parts whose mean is the metric; None if it is not known here."""
    many, width = predictions.shape[1] > 1, predictions.shape[1]
    is_classes = labels.dtype.kind == "i"
    is_ranked = is_classes and metric.kind in AREAS
    class_id = metric.params.get("class_id")
    if is_ranked or (_made(metric) and is_classes):
        one_hot = labels if labels.ndim > 1 else labels[:, None] == np.arange(width)
        one_hot = one_hot if many else labels.reshape(-1, 1)
        ids: list[Any] = [slice(None)]
        if many and class_id is not None:
            ids = [slice(class_id, class_id + 1)]
        elif many and metric.is_macro:
            ids = [slice(i, i + 1) for i in range(width)]
        elif many and labels.ndim == 1:
            return None  # TFMA pools the classes; the config refuses it.
        if len(ids) > MAX_CLASSES:
            return None
        if is_ranked:
            return [_ranking(metric, one_hot[:, x], predictions[:, x]) for x in ids]
        is_fixed = {"thresholds", "num_thresholds", "top_k"} & metric.params.keys()
        given = metric.params.get("thresholds", metric.params.get("threshold"))
        given = given[0] if isinstance(given, list) else given
        answers = predictions >= np.float32(threshold if given is None else given)
        if many and labels.ndim == 1 and not is_fixed:
            answers = predictions.argmax(axis=1)[:, None] == np.arange(width)
        return [_confusion(metric, one_hot[:, x], answers[:, x]) for x in ids]
    if metric.is_macro or class_id is not None:
        return None
    if metric.kind in ("r2_score", "relative_error"):
        return [_regression(metric, labels, predictions)]
    return _mean(metric, labels, predictions)


def _made(metric: MetricOfModel) -> Any:
    """Returns TFMA's metric of a confusion matrix; None if it is of another kind."""
    from tensorflow_model_analysis.metrics import metric_types

    known: Any = metric_types.registered_metrics().get(metric.class_name)
    looks_for = {"top_k", "num_thresholds"} & metric.params.keys()
    thresholds = metric.params.get("thresholds")
    several = isinstance(thresholds, list) and len(thresholds) > 1
    if not hasattr(known, "result") or looks_for or several:
        return None
    return None if re.search("At|Max", metric.class_name) else known()


def _ranking(metric: MetricOfModel, labels: _Array, scores: _Array) -> _Part:
    """Returns the area under a curve, with ties in bins of equal scores."""
    edges = np.unique(scores)
    if len(edges) > 2 * _BINS:
        # Rare positives are told apart as well as all examples.
        at, positive = np.linspace(0, 1, _BINS), scores[labels == 1]
        both = [np.quantile(x, at) for x in (scores, positive) if x.size]
        edges = np.unique(np.concatenate(both))
    bins = len(edges)
    columns = np.searchsorted(edges, scores, side="right") - 1
    of_precision = metric.params.get("curve") == "PR" or metric.kind != "auc"

    def value(sums: _Array) -> _Array:
        negative, positive = sums[:, :bins], sums[:, bins:]
        all_positive = positive.sum(axis=1)
        if of_precision:
            tp, fp = (x[:, ::-1].cumsum(axis=1) for x in (positive, negative))
            precision = np.nan_to_num(tp / (tp + fp))
            area = (positive[:, ::-1] * precision).sum(axis=1)
            return np.asarray(area / all_positive)
        below = negative.cumsum(axis=1) - negative / 2
        area = (positive * below).sum(axis=1)
        return np.asarray(area / (all_positive * negative.sum(axis=1)))

    return _Part([(columns.clip(0) + bins * labels, 1.0)], 2 * bins, value)


def _confusion(metric: MetricOfModel, labels: _Array, answers: _Array) -> _Part:
    made = _made(metric)

    def value(sums: _Array) -> _Array:
        # TFMA's order: true positives, true negatives, false ones.
        rows = sums[:, [3, 0, 1, 2]].tolist()
        return np.array([float(made.result(*row)) for row in rows])

    return _Part([(2 * labels.astype(int) + answers, 1.0)], 4, value)


def _regression(metric: MetricOfModel, labels: _Array, predictions: _Array) -> _Part:
    """Returns a metric of ``components.regression_metrics``."""
    error, centered = labels - predictions, labels - labels.mean(axis=0)
    sums = (np.ones_like(labels), centered, centered**2, error**2)
    columns = (*sums, abs(error), abs(labels))

    def value(sums: _Array) -> _Array:
        count, y, squares, errors, sizes_of_errors, sizes = sums.T
        if metric.kind == "relative_error":
            return np.asarray(sizes_of_errors / sizes)
        return np.asarray(1 - errors / (squares - y * y / count))

    added = [(at, column.sum(axis=1)) for at, column in enumerate(columns)]
    return _Part(added, len(columns), value)


def _mean(
    metric: MetricOfModel, labels: _Array, predictions: _Array
) -> list[_Part] | None:
    """Returns a mean over examples of what a function of Keras gives for each."""
    import tensorflow as tf

    is_root = metric.kind == "root_mean_squared_error"
    function = getattr(
        tf.keras.metrics, "mean_squared_error" if is_root else metric.kind, None
    )
    known = ("k", "threshold", "from_logits")
    params = {x: y for x, y in metric.params.items() if x in known}
    if function is None or isinstance(function, type):
        return None
    shaped = labels[:, None] if labels.ndim == 1 else labels
    each = function(
        tf.constant(shaped, tf.float32), tf.constant(predictions, tf.float32), **params
    )
    each = np.reshape(each, [len(labels), -1]).mean(axis=1)

    def value(sums: _Array) -> _Array:
        mean = sums[:, 0] / sums[:, 1]
        return np.asarray(np.sqrt(mean) if is_root else mean)

    return [_Part([(0, each), (1, 1.0)], 2, value)]
