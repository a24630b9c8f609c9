"""Callbacks about the metrics of an epoch, which Keras calls logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.training.input.training_input import TrainingInput
from pipeline.training.strategy.distribution import Distribution
from sluice import progress
from sluice.errors import NodeError, did_you_mean


class LossPerExample(tf.keras.callbacks.Callback):
    """Divides the losses of an epoch by its examples, where batches are padded.

    Keras divides by the size of the batches, in which padding counts although its
    weight is 0. Other metrics are divided by the weights.
    """

    def __init__(
        self, training_input: TrainingInput, distribution: Distribution
    ) -> None:
        super().__init__()
        padded = distribution.workers > 1 or distribution.static_shapes
        size = distribution.batch_size if padded else 0
        counts = {
            "loss": (training_input.steps_per_epoch, training_input.train_examples),
            "val_loss": (training_input.eval_steps, training_input.eval_examples),
        }
        # Where examples are left out of training there is no padding.
        self._factors = {
            name: max(1.0, steps * size / examples)
            for name, (steps, examples) in counts.items()
        }

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        for name, factor in self._factors.items():
            if logs is not None and name in logs:
                logs[name] *= factor


class LearningRateLog(tf.keras.callbacks.Callback):
    """Adds ``learning_rate``, that of the last step, to the metrics of each epoch."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is not None:
            logs["learning_rate"] = float(self.model.optimizer.learning_rate.numpy())


class CheckOwnCallbacks(tf.keras.callbacks.Callback):
    """Checks what the user's callbacks log, and notes that they stop the training."""

    def __init__(self, functions: Sequence[str]) -> None:
        super().__init__()
        self._functions = ", ".join(functions)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        for name, value in (logs or {}).items():
            # Strings too, which float() would take and TensorBoard would not.
            if isinstance(value, str) or np.size(value) != 1 or not _is_number(value):
                raise NodeError(
                    f"a callback has logged {name!r}, which is not a number",
                    where=f"train.callbacks: {self._functions}",
                    expected="one number for each metric of an epoch",
                    actual=f"{value!r:.80}",
                )
        if self.model.stop_training and epoch + 1 < self.params["epochs"]:
            line = f"training stopped by train.callbacks after epoch {epoch + 1}"
            progress.note(f"{line}: {self._functions}", event="stopped_by_callback")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


class RequireMetrics(tf.keras.callbacks.Callback):
    """Fails after the first epoch if a metric that is watched does not exist.

    Keras only warns, so that training would never stop early.
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self._names = names

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        known = sorted(logs or {})
        for name in self._names:
            if name not in known:
                raise NodeError(
                    f"there is no metric {name!r}",
                    where="train.early_stopping.metric or "
                    "train.reduce_on_plateau.metric",
                    expected="one of " + ", ".join(known),
                    hint=did_you_mean(name, known),
                )


class ReduceOnPlateau(tf.keras.callbacks.ReduceLROnPlateau):
    """Keras' callback, which also reduces a ``Schedule``: by its factor.

    Keras sets the learning rate, which a schedule would overwrite at the next step.
    Its optimizers return only the current value; ours have the ``schedule`` too.
    The factor is a variable of the optimizer, so checkpoints contain it. The history
    has the key ``learning_rate`` instead of Keras' ``lr``.
    """

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        optimizer, logs = self.model.optimizer, {} if logs is None else logs
        before = float(optimizer.learning_rate.numpy())
        super().on_epoch_end(epoch, logs)
        del logs["lr"]
        after = float(optimizer.learning_rate.numpy())
        inner = getattr(optimizer, "inner_optimizer", optimizer)
        schedule = getattr(inner, "schedule", None)
        if schedule is not None and after != before:
            schedule.factor.assign(schedule.factor * (after / before))
