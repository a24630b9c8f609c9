"""Keras callback that tells the supervisor of this process that training progresses."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipeline.training.strategy.task_process import beat, set_fitting


class Heartbeat(tf.keras.callbacks.Callback):
    """Reports each step, and when ``fit`` polls for requests to stop."""

    def __init__(self) -> None:
        super().__init__()
        # Keras then hands over tensors, for which it need not wait. It also reads this
        # where it refuses callbacks of steps, with parameter servers.
        self._supports_tf_logs = True

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        set_fitting(True)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        set_fitting(False)

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        beat()

    def on_test_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        beat()
