"""State of a training that is not a variable of its model or optimizer."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.training.progress import ReportProgress

_FACTS = ("epoch", "batch", "phase", "history", "callbacks", "shapes")
# What callbacks change from epoch to epoch; Keras' own reset it when ``fit`` begins.
_ATTRIBUTES = {
    tf.keras.callbacks.EarlyStopping: ("wait", "best", "best_epoch", "stopped_epoch"),
    tf.keras.callbacks.ReduceLROnPlateau: ("wait", "best", "cooldown_counter"),
    ReportProgress: ("epoch_facts", "time_to_first_step_s"),
}


class TrainingState(tf.train.experimental.PythonState):
    """Position, history, training metrics and callbacks of a training.

    Attributes:
      epoch: number of completed epochs.
      batch: number of completed batches of the next epoch.
      phase: number of the phase, see ``pipeline.training.fit``.
      history: values of each metric by epoch.
      callbacks: attributes of each callback that has a state.
      metrics: variables of the training metrics after ``batch``; empty between epochs.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.batch = 0
        self.phase = 0
        self.history: dict[str, list[float]] = {}
        self.callbacks: list[dict[str, Any]] = []
        self.shapes: list[list[int]] = []
        self.best_weights: list[np.ndarray] = []
        self.metrics: list[np.ndarray] = []

    def read_callbacks(self, callbacks: Sequence[tf.keras.callbacks.Callback]) -> None:
        """Copies the history and the state of the callbacks."""
        self.callbacks = []
        for callback, names in _stateful(callbacks):
            values = {name: getattr(callback, name) for name in names}
            self.callbacks.append(
                {k: np.asarray(v).tolist() for k, v in values.items()}
            )
            if isinstance(callback, tf.keras.callbacks.EarlyStopping):
                self.best_weights = callback.best_weights or []
        self.history = {
            name: [float(value) for value in values]
            for name, values in _history(callbacks).history.items()
        }

    def write_callbacks(self, callbacks: Sequence[tf.keras.callbacks.Callback]) -> None:
        """Sets the history and the state of the callbacks; once ``fit`` has begun."""
        # Before the first epoch there is nothing to set.
        pairs = zip(_stateful(callbacks), self.callbacks, strict=False)
        for (callback, _), values in pairs:
            for name, value in values.items():
                setattr(callback, name, value)
            if isinstance(callback, tf.keras.callbacks.EarlyStopping):
                callback.best_weights = self.best_weights or None
        history = {name: list(values) for name, values in self.history.items()}
        _history(callbacks).history = history

    def serialize(self) -> bytes:
        facts = {name: getattr(self, name) for name in _FACTS}
        buffer = io.BytesIO()
        np.savez(
            buffer,
            np.array(json.dumps({**facts, "metrics": len(self.metrics)})),
            *self.metrics,
            *self.best_weights,
        )
        return buffer.getvalue()

    def deserialize(self, string_value: bytes) -> None:
        facts, *arrays = np.load(io.BytesIO(string_value), allow_pickle=False).values()
        values = json.loads(facts.item())
        count = values.pop("metrics")
        self.metrics, self.best_weights = arrays[:count], arrays[count:]
        for name, value in values.items():
            setattr(self, name, value)


def read_metrics(model: tf.keras.Model) -> list[np.ndarray]:
    """Returns the values of all variables of the model's metrics."""
    return [value for metric in model.metrics for value in metric.get_weights()]


def write_metrics(model: tf.keras.Model, values: Sequence[np.ndarray]) -> None:
    """Sets the variables of the model's metrics, which must have been built."""
    rest = list(values)
    for metric in model.metrics:
        count = len(metric.weights)
        metric.set_weights(rest[:count])
        del rest[:count]


def _stateful(callbacks: Sequence[Any]) -> list[tuple[Any, tuple[str, ...]]]:
    return [
        (callback, names)
        for callback in callbacks
        for kind, names in _ATTRIBUTES.items()
        if isinstance(callback, kind)
    ]


def _history(callbacks: Sequence[Any]) -> tf.keras.callbacks.History:
    (found,) = (
        item for item in callbacks if isinstance(item, tf.keras.callbacks.History)
    )
    return found
