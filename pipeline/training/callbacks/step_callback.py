"""Base class of callbacks with methods for steps that need no values of metrics.

After each batch Keras waits for the device and fetches all metrics, unless a callback
says that it takes tensors; with parameter servers it refuses one that does not. There
is no public way to say so, and on the class the attribute has no effect (tf_keras 2.16
and 2.21).
"""

from __future__ import annotations

import tensorflow as tf


class StepCallback(tf.keras.callbacks.Callback):
    """Keras callback whose logs of batches are tensors."""

    def __init__(self) -> None:
        super().__init__()
        self._supports_tf_logs = True
