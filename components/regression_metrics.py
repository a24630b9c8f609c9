"""Metrics of regressions: R2, the relative error, and those of one of several targets.

TFMA finds them by module and class name, and adds their weights over batches: these are
sums, in double precision, since squares of large numbers hide a small variance.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import tensorflow as tf


class _OfSums(tf.keras.metrics.Metric):
    """Weighted sums over examples, of labels y and errors e: 1, y, y², |y|, |e|, e²."""

    def __init__(self, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name, dtype)
        self.sums = self.add_weight("sums", [6], initializer="zeros", dtype="float64")

    def update_state(
        self, labels: Any, predictions: Any, sample_weight: Any = None
    ) -> None:
        y = tf.reshape(tf.cast(labels, tf.float64), [len(labels), -1])
        e = y - tf.cast(tf.reshape(predictions, y.shape), tf.float64)
        w = tf.ones_like(y) if sample_weight is None else sample_weight
        w = tf.reshape(tf.cast(w, tf.float64), [len(labels), -1])
        values = tf.ones_like(y), y, y * y, abs(y), abs(e), e * e
        self.sums.assign_add([tf.reduce_sum(w * x) for x in values])

    def reset_state(self) -> None:
        self.sums.assign(tf.zeros_like(self.sums))


class R2Score(_OfSums):
    """1 minus the squared errors divided by those of the mean of the labels.

    NaN if all labels are equal. Keras's R2Score has weights of several shapes, which
    TFMA cannot add.
    """

    def result(self) -> Any:
        count, y, squares, *_, errors = self.sums.numpy()
        variation = squares - y * y / count if count else 0.0
        is_constant = variation <= 1e-12 * squares
        return tf.constant(float("nan") if is_constant else 1 - errors / variation)


class RelativeError(_OfSums):
    """The sum of absolute errors divided by that of the absolute labels.

    It is 0.1 if predictions are wrong by a tenth of the label's size on average. NaN if
    all labels are 0. Also called weighted absolute percentage error (WAPE).
    """

    def result(self) -> Any:
        *_, size, errors, _ = self.sums.numpy()
        return tf.constant(errors / size if size else float("nan"))


class OfTarget(tf.keras.metrics.Metric):
    """A metric of one target of several.

    Args:
      name: of the result.
      index: of the target.
      metric: the class, of ``tf.keras.metrics`` or of a module.
      module: the module; empty: Keras's.
      params: of the class.
    """

    def __init__(
        self,
        name: str,
        index: int,
        metric: str,
        module: str = "",
        params: Mapping[str, Any] | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(name, dtype)
        self._index = index
        self._given = {"index": index, "metric": metric, "module": module}
        self._params = dict(params or {})
        owner = importlib.import_module(module) if module else tf.keras.metrics
        self._metric = getattr(owner, metric)(**self._params)

    def update_state(
        self, labels: Any, predictions: Any, sample_weight: Any = None
    ) -> None:
        at = self._index
        columns = (x[:, at : at + 1] for x in (labels, predictions))
        self._metric.update_state(*columns, sample_weight)

    def reset_state(self) -> None:
        self._metric.reset_state()

    def result(self) -> Any:
        return self._metric.result()

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._given, "params": self._params}
