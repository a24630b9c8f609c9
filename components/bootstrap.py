"""Intervals of metrics by bootstrap, and the metrics of a constant prediction.

The examples of a slice are put into groups at random, one example in each as long as
there are few, and the groups are drawn again with replacement. So the time does not
grow with the number of examples, and every metric is a function of sums over groups.

Source: B. Efron, R. Tibshirani, An Introduction to the Bootstrap, 1993: percentile
intervals, here placed around the value that TFMA has computed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sluice.metrics import (
    ERRORS_OF_MEDIAN,
    MEASURES_A_MODEL,
    SHARES,
    THRESHOLD,
    direction_of,
)
from sluice.uncertainty import examples_of, wilson

REFERENCE = "reference"
GROUPS = 1_000
RESAMPLES = 300
MAX_CLASSES = 100  # Of a mean over classes, each of which is ranked by itself.
_BINS = 100
_SCALARS = 10  # Sums of a metric that is no area.
_QUANTILES = (0.025, 0.975)
_AREAS = ("auc", "auc_precision_recall")
_PRECISION_OF_AREAS = 5e-4  # TFMA counts in 10,000 steps.

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
class Examples:
    """Examples of a slice.

    Attributes:
      labels: class ids ``[n]``; 0 or 1 for each class, or numbers, ``[n, k]``.
      predictions: probabilities or numbers ``[n, k]`` by model; of two classes that of
        the second alone.
      weights: ``[n]``; None: each counts as 1.
      total: the number of examples that these were drawn from.
      thresholds: by model, the probability from which on the second of two classes is
        predicted; 0.5 where there is none.
    """

    labels: _Array
    predictions: Mapping[str, _Array]
    weights: _Array | None
    total: int
    thresholds: Mapping[str, float] = field(default_factory=dict)

    def of_target(self, target: int | None) -> Examples:
        """Returns the examples with one of the numbers; all of them for None."""
        if target is None:
            return self
        at = slice(target, target + 1)
        predictions = {name: x[:, at] for name, x in self.predictions.items()}
        return replace(self, labels=self.labels[:, at], predictions=predictions)

    @property
    def effective(self) -> float:
        """Kish's effective sample size of those that these were drawn from."""
        if self.weights is None:
            return self.total
        w = self.weights
        return float(w.sum() ** 2 / (w**2).sum() * self.total / len(w))


def estimates(
    metrics: Sequence[MetricOfModel], given: Examples, candidate: str
) -> dict[str, Any]:
    """Returns what is known of each metric besides its value.

    By the metric's name, the arguments of a ``sluice.uncertainty.Uncertainty``. Metrics
    that are not known here are left out, as are means over more than ``MAX_CLASSES``.

    Args:
      metrics: of the config.
      given: the examples of a slice.
      candidate: the model whose metrics they are.
    """
    count = len(given.labels)
    source = np.random.default_rng(17)
    size = min(count, GROUPS)
    groups = np.arange(count) if count <= GROUPS else source.integers(size, size=count)
    draws = _draws(size)
    scale = float(np.sqrt(count / given.total))
    weights = np.ones(count) if given.weights is None else given.weights
    found: dict[str, Any] = {}
    for metric in metrics:
        examples = given.of_target(metric.target)
        # A constant prediction is none of a model that was given.
        models = {**examples.predictions, REFERENCE: _constant(metric, examples)}
        values: dict[str, _Array] = {}
        for model, predictions in models.items():
            threshold = examples.thresholds.get(model, THRESHOLD)
            parts = _parts(metric, examples.labels, predictions, threshold)
            if parts:
                with np.errstate(all="ignore"):
                    each = [part.values(draws, groups, weights) for part in parts]
                # As TFMA's, a class without examples has 0 in a mean over classes.
                values[model] = (
                    np.nan_to_num(each).mean(axis=0) if metric.is_macro else each[0]
                )
        if not np.isfinite(values.get(candidate, np.array([np.nan]))[0]):
            continue
        own, reference = values[candidate], values.pop(REFERENCE)
        others = {
            model: each
            for model, each in values.items()
            if model != candidate and np.isfinite(each[0])
        }
        share_of = None if examples.weights is not None else _share_of(metric, examples)
        found[metric.name] = {
            "value": float(own[0]),
            "interval": _own_interval(metric, own, examples, share_of, scale),
            "of": share_of,
            "reference": _number(reference[0]),
            "gain": _interval(own - reference, scale)
            if metric.measures_a_model
            else None,
            "sign": -1 if direction_of(metric.kind) == "min" else 1,
            "values": {x: float(y[0]) for x, y in others.items()},
            "changes": {
                model: _interval(own - other, scale, _precision(metric))
                for model, other in others.items()
            },
        }
    return found


@functools.lru_cache(maxsize=4)
def _draws(size: int) -> _Array:
    """Returns how often each group is taken: once, and then for each resample."""
    source = np.random.default_rng(17)
    drawn = source.multinomial(size, np.full(size, 1 / size), RESAMPLES)
    return np.vstack([np.ones(size), drawn])


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _precision(metric: MetricOfModel) -> float:
    """Returns by how much TFMA's value may differ for predictions in the same order."""
    return _PRECISION_OF_AREAS if metric.kind in _AREAS else 0.0


def _interval(
    values: _Array, scale: float, least: float = 0.0
) -> tuple[float, float] | None:
    """Returns the bounds, from the value and its resamples, as differences from it.

    They are at least ``least`` away from it.
    """
    if not np.isfinite(values[0]) or np.isfinite(values[1:]).mean() < 0.5:
        return None
    low, high = (np.nanquantile(values[1:], _QUANTILES) - values[0]) * scale
    return min(-least, float(low)), max(least, float(high))


def _own_interval(
    metric: MetricOfModel,
    values: _Array,
    examples: Examples,
    share_of: float | None,
    scale: float,
) -> tuple[float, float] | None:
    value, interval = float(values[0]), _interval(values, scale)
    is_share = metric.kind in SHARES and 0 <= value <= 1
    total = share_of
    if is_share and interval == (0.0, 0.0):
        # Resamples of a perfect ranking are perfect, however few the examples.
        total = total or examples.effective * _rarest(examples.labels)
    if is_share and total:
        low, high = wilson(value * total, total)
        return low - value, high - value
    return interval


def _rarest(labels: _Array) -> float:
    """Returns the share of examples of the class with the fewest."""
    _, counts = np.unique(labels, return_counts=True)
    return float(counts.min() / counts.sum())


def _share_of(metric: MetricOfModel, examples: Examples) -> float | None:
    """Returns how many examples a metric is a share of; None if it is none."""
    if examples.labels.ndim > 1:  # Pooled over the classes of an example.
        return None
    one = next(iter(examples.predictions.values())).shape[1] == 1
    per_class = [float((examples.labels == i).sum()) for i in (0, 1)] if one else []
    scale = examples.total / len(examples.labels)
    return examples_of(metric.kind, examples.total, [x * scale for x in per_class])


def _constant(metric: MetricOfModel, examples: Examples) -> _Array:
    """Returns the best prediction that is the same for every example.

    It is each class's share of the examples, or of numbers the mean, for an error that
    is absolute the median.
    """
    labels, weights = examples.labels, examples.weights
    width = next(iter(examples.predictions.values())).shape[1]
    if labels.dtype.kind == "f" and metric.kind in ERRORS_OF_MEDIAN:
        constant = [_median(labels[:, i], weights) for i in range(labels.shape[1])]
    elif labels.ndim > 1:
        constant = np.average(labels, axis=0, weights=weights)
    elif width == 1:
        constant = [np.average(labels == 1, weights=weights)]
    else:
        each = np.bincount(labels, weights=weights, minlength=width)
        constant = each / each.sum()
    return np.broadcast_to(np.asarray(constant, float), (len(labels), width))


def _median(values: _Array, weights: _Array | None) -> float:
    if weights is None:
        return float(np.median(values))
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(below, below[-1] / 2)])


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
            flat = (np.broadcast_to(x, shape).ravel() for x in (places, amounts))
            index, added = flat
            sums += np.bincount(index, added, size)
        # Single precision is enough for an area, and twice as fast.
        kind: Any = np.float32 if self.width > _SCALARS else np.float64
        matrix = sums.reshape(-1, self.width).astype(kind)
        return self.value((draws.astype(kind) @ matrix).astype(float))


def _parts(
    metric: MetricOfModel, labels: _Array, predictions: _Array, threshold: float
) -> list[_Part] | None:
    """Returns the parts whose mean is the metric; None if it is not known here."""
    many, width = predictions.shape[1] > 1, predictions.shape[1]
    is_classes = labels.dtype.kind == "i"
    is_ranked = is_classes and metric.kind in _AREAS
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
    known = {"k": "k", "threshold": "threshold", "from_logits": "from_logits"}
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
