"""Stops training when the loss is NaN or infinite, and says where.

Keras' ``TerminateOnNaN`` ends the training as if it were complete, and waits for the
device after each batch. The loss in Keras' logs is the mean over the epoch so far,
which stays NaN or infinite from the first such batch on, so it is read now and then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from sluice.errors import NodeError

# Executions after which the loss is read.
_EVERY = 16


class StepCallback(tf.keras.callbacks.Callback):
    """Keras callback whose logs of batches are tensors.

    After each batch Keras waits for the device and fetches all metrics, unless a
    callback says that it takes tensors; with parameter servers it refuses one that does
    not. There is no public way to say so, and on the class the attribute has no effect
    (tf_keras 2.16 and 2.21).
    """

    def __init__(self) -> None:
        super().__init__()
        self._supports_tf_logs = True


class StopOnNonFiniteLoss(StepCallback):
    """Raises a ``NodeError`` when the loss is NaN or infinite.

    Must come before all callbacks that save weights. All workers see the same loss.
    """

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch, self._executions = epoch + 1, 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._executions += 1
        if self._executions % _EVERY == 0:
            self._check(f"epoch {self._epoch}, up to batch {batch + 1}", logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._check(f"epoch {self._epoch}", logs)

    def _check(self, place: str, logs: Any) -> None:
        # With parameter servers the logs of a batch are still to come.
        found = logs if isinstance(logs, Mapping) else {}
        for name in ("loss", "val_loss"):
            loss = float(found.get(name, 0.0))
            if not np.isfinite(loss):
                rate = float(self.model.optimizer.learning_rate.numpy())
                raise NodeError(
                    f"the {name} is {loss}, so training has stopped",
                    where=f"{place}, learning rate {rate:g}",
                    hint="a lower train.learning_rate, a warm-up or "
                    "train.clip_gradients; tf.debugging.enable_check_numerics() in the "
                    "model's code finds the operation",
                )
