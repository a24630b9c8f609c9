"""The model of a user; copied into a project as ``my_models.py``.

Files beside it tell it what to do: ``hold`` has a number of training steps after which
the next epoch does not begin until the file is gone, and ``held`` says that it waits;
with ``sleeper`` it leaves a process of its own, whose id it writes there; ``exit``
says how it crashes, where a test has put a call of ``_crash`` into it.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import tensorflow as tf

_HERE = Path(__file__).parent


class HeldModel(tf.keras.Model):
    """Trains as any other, but can be made to wait before an epoch."""

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        self._evaluates = True
        try:
            return super().evaluate(*args, **kwargs)
        finally:
            self._evaluates = False

    def reset_metrics(self) -> None:
        """Is called before each epoch, and before each evaluation."""
        super().reset_metrics()
        if getattr(self, "_evaluates", False):
            return
        hold = _HERE / "hold"
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
