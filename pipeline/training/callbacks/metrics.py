"""Callbacks about the metrics of an epoch, which Keras calls logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from sluice.errors import NodeError, did_you_mean


class LearningRateLog(tf.keras.callbacks.Callback):
    """Adds ``learning_rate``, that of the last step, to the metrics of each epoch."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is not None:
            logs["learning_rate"] = float(self.model.optimizer.learning_rate.numpy())


class RequireMetrics(tf.keras.callbacks.Callback):
    """Fails after the first epoch if a metric that is watched does not exist.

    Keras only warns, so that training would never stop early.

    Args:
      names: of the metrics.
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
