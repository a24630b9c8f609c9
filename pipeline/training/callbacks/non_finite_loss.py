"""Stops training when the loss is NaN or infinite, and says where.

Keras' ``TerminateOnNaN`` ends the training as if it were complete, and waits for the
device after each batch. The loss in Keras' logs is the mean over the epoch so far,
which stays NaN or infinite from the first such batch on, so it is read now and then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pipeline.training.callbacks.step_callback import StepCallback
from sluice.errors import NodeError

# Executions after which their losses are read.
_EVERY = 16


class StopOnNonFiniteLoss(StepCallback):
    """Raises a ``NodeError`` when the loss is NaN or infinite.

    Must come before all callbacks that save weights. All workers see the same loss.
    """

    def __init__(self) -> None:
        super().__init__()
        self._epoch = 1
        self._losses: list[tuple[str, Any]] = []

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch + 1

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._add(f"epoch {self._epoch}, batch {batch + 1}", logs)

    def on_test_begin(self, logs: Any = None) -> None:
        self.check()

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self._add(f"validation of epoch {self._epoch}, batch {batch + 1}", logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.check()
        # With parameter servers there are no losses of batches.
        self._add(f"epoch {self._epoch}", logs)
        self.check()

    def _add(self, place: str, logs: Any) -> None:
        # With parameter servers the logs of a batch are still to come.
        if isinstance(logs, Mapping) and "loss" in logs:
            self._losses.append((place, logs["loss"]))
        if len(self._losses) >= _EVERY:
            self.check()

    def check(self) -> None:
        """Reads the losses, which waits for the device; call it before a save.

        Raises:
          NodeError: one is not finite.
        """
        losses, self._losses = self._losses, []
        if losses and not np.isfinite(float(losses[-1][1])):
            values = ((place, float(loss)) for place, loss in losses)
            place, loss = next(item for item in values if not np.isfinite(item[1]))
            rate = float(self.model.optimizer.learning_rate.numpy())
            raise NodeError(
                f"the loss is {loss}, so training has stopped",
                where=f"{place}, learning rate {rate:g}",
                hint="a lower train.learning_rate, a warm-up or train.clip_gradients; "
                "tf.debugging.enable_check_numerics() in the model's code finds the "
                "operation",
            )
