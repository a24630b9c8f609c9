"""Callbacks about the metrics of an epoch, which Keras calls logs."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipeline.config.train import Train
from sluice.errors import NodeError, did_you_mean


class LearningRateLog(tf.keras.callbacks.Callback):
    """Adds ``learning_rate``, that of the last step, to the metrics of each epoch."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is not None:
            logs["learning_rate"] = float(self.model.optimizer.learning_rate.numpy())


class CheckWatched(tf.keras.callbacks.Callback):
    """Raises a ``NodeError`` if a metric that is watched does not exist.

    Keras only warns of it, so that training would never stop early.
    """

    def __init__(self, train: Train) -> None:
        super().__init__()
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


class ReduceOnPlateau(tf.keras.callbacks.ReduceLROnPlateau):
    """Keras' callback without its metric ``lr``: there is ``learning_rate``."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        logs = {} if logs is None else logs
        super().on_epoch_end(epoch, logs)
        del logs["lr"]
