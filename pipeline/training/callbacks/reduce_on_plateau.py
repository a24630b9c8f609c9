"""Reduces the learning rate on a plateau, whatever its schedule."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipeline.training.learning_rate import Schedule


class ReduceOnPlateau(tf.keras.callbacks.ReduceLROnPlateau):
    """Keras' callback, which also reduces a ``Schedule``: by its factor.

    Keras sets the learning rate, which a schedule would overwrite at the next step.
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
        # Its property returns the current value; TensorBoard's callback does this too.
        schedule = inner._learning_rate
        if isinstance(schedule, Schedule) and after != before:
            schedule.factor.assign(schedule.factor * (after / before))
