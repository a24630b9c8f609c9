"""Intervals of metrics by bootstrap, and the metrics of a constant prediction.

The examples of a slice are put into groups at random, one example in each as long as
there are few, and the groups are drawn again with replacement. So the time does not
grow with the number of examples, and every metric is a function of sums over groups.

Source: B. Efron, R. Tibshirani, An Introduction to the Bootstrap, 1993: percentile
intervals, here placed around the value that TFMA has computed.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from components.metric_of_sums import AREAS, MetricOfModel, metric_values
from sluice.metrics import ERRORS_OF_MEDIAN, SHARES, THRESHOLD, direction_of
from sluice.uncertainty import examples_of, wilson

REFERENCE = "reference"
GROUPS = 1_000
RESAMPLES = 300
_QUANTILES = (0.025, 0.975)
_LEAST = 1e-7  # By which Keras divides a relative error at least.
_PRECISION_OF_AREAS = 5e-4  # TFMA counts in 10,000 steps.

_Array = np.ndarray


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
        models = dict(examples.predictions)
        if metric.measures_a_model:
            models[REFERENCE] = _constant(metric, examples)
        values: dict[str, _Array] = {}
        for model, predictions in models.items():
            threshold = examples.thresholds.get(model, THRESHOLD)
            given_to = metric, examples.labels, predictions, threshold
            known = metric_values(*given_to, weights, groups, draws)
            if known is not None and np.isfinite(known[0]):
                values[model] = known
        if candidate not in values:
            continue
        own, reference = values.pop(candidate), values.pop(REFERENCE, None)
        share_of = None if examples.weights is not None else _share_of(metric, examples)
        # By how much TFMA's value may differ for predictions in the same order.
        precision = _PRECISION_OF_AREAS if metric.kind in AREAS else 0.0
        found[metric.name] = {
            "value": float(own[0]),
            "interval": _own_interval(metric, own, examples, share_of, scale),
            "of": share_of,
            "reference": None if reference is None else float(reference[0]),
            "gain": None if reference is None else _interval(own - reference, scale),
            "sign": -1 if direction_of(metric.kind) == "min" else 1,
            # Twice the 95 % interval of the sample.
            "spread": 1.0 if scale >= 1 else 2 / scale,
            "values": {x: float(y[0]) for x, y in values.items()},
            "changes": {
                model: _interval(own - other, scale, precision)
                for model, other in values.items()
            },
        }
    return found


@functools.lru_cache(maxsize=4)
def _draws(size: int) -> _Array:
    """Returns how often each group is taken: once, and then for each resample."""
    source = np.random.default_rng(17)
    drawn = source.multinomial(size, np.full(size, 1 / size), RESAMPLES)
    return np.vstack([np.ones(size), drawn])


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

    It is each class's share of the examples, or of numbers the mean; for an absolute
    error the median, for a relative one that with the weights 1 / label, for squared
    logarithms the mean of these.
    """
    labels, weights = examples.labels, examples.weights
    width = next(iter(examples.predictions.values())).shape[1]
    is_number = labels.dtype.kind == "f"
    if is_number and metric.kind == "mean_squared_logarithmic_error":
        logs = np.log1p(np.maximum(labels, 0.0))
        constant = np.expm1(np.average(logs, axis=0, weights=weights))
    elif is_number and metric.kind == "mean_absolute_percentage_error":
        each = 1.0 if weights is None else weights
        relative = [each / np.maximum(np.abs(x), _LEAST) for x in labels.T]
        constant = [_median(*pair) for pair in zip(labels.T, relative, strict=True)]
    elif is_number and metric.kind in ERRORS_OF_MEDIAN:
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
