"""A user's model; copied into a project as ``my_models.py``.

Files beside it control it. ``hold``: the number of training steps after which the next
epoch waits until the file is deleted; meanwhile ``held`` exists. ``kill``: the number
of training steps after which the process kills itself, once. ``sleeper``: starts a
process that outlives the node, and writes its id to the file. ``exit``: ``_crash``,
which a test adds to the code, exits with status 3 instead of a segmentation fault.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import tensorflow as tf

_HERE = Path(__file__).parent


class HeldModel(tf.keras.Model):
    """A Keras model that can wait before an epoch."""

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        self._evaluates = True
        try:
            return super().evaluate(*args, **kwargs)
        finally:
            self._evaluates = False

    def reset_metrics(self) -> None:
        """Waits or dies as told; called before each epoch and evaluation."""
        super().reset_metrics()
        if getattr(self, "_evaluates", False):
            return
        kill, hold = _HERE / "kill", _HERE / "hold"
        if kill.exists() and self.optimizer.iterations >= int(kill.read_text()):
            kill.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        while hold.exists() and self.optimizer.iterations >= int(hold.read_text()):
            (_HERE / "held").touch()
            time.sleep(0.02)


def _crash() -> None:
    if (_HERE / "exit").exists():
        os._exit(3)
    ctypes.string_at(0)


def build_model(inputs: Any, params: dict[str, Any]) -> tf.keras.Model:
    """One dense layer on the pixels."""
    sleeper = _HERE / "sleeper"
    if sleeper.exists():
        process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        sleeper.write_text(str(process.pid))
    layers = inputs.keras_inputs()
    x = tf.keras.layers.Flatten()(layers["image_xf"])
    return HeldModel(layers, inputs.output_layer()(x))
