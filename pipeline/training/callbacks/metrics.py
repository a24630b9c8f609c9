"""Callbacks about the metrics of an epoch, which Keras calls logs."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipeline.config.train import Train
from sluice import progress
from sluice.errors import NodeError, did_you_mean


class LearningRateLog(tf.keras.callbacks.Callback):
    """Adds ``learning_rate``, that of the last step, to the metrics of each epoch."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is not None:
            logs["learning_rate"] = float(self.model.optimizer.learning_rate.numpy())


class CheckLogs(tf.keras.callbacks.Callback):
    """Checks the metrics of an epoch, and notes that the user's callbacks stop here.

    Keras only warns of a watched metric that does not exist, so that training would
    never stop early.
    """

    def __init__(self, train: Train) -> None:
        super().__init__()
        self._own = ", ".join(callback.function for callback in train.callbacks)
        self._watched = {
            f"train.{key}.metric": watching.metric
            for key in ("early_stopping", "reduce_on_plateau")
            if (watching := getattr(train, key))
        }

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        logs = logs or {}
        for key, name in self._watched.items():
            if name not in logs:
                raise NodeError(
                    f"there is no metric {name!r} among {', '.join(sorted(logs))}",
                    where=key,
                    hint=did_you_mean(name, logs),
                )
        for name, value in logs.items():
            try:
                logs[name] = float(value)
            except (TypeError, ValueError) as error:
                raise NodeError(
                    f"a callback has logged {name!r}, which is not a number: "
                    f"{value!r:.80}",
                    where=f"train.callbacks: {self._own}",
                ) from error
        if self.model.stop_training and epoch + 1 < self.params["epochs"]:
            line = f"training stopped by train.callbacks after epoch {epoch + 1}"
            progress.note(f"{line}: {self._own}", event="stopped_by_callback")


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
