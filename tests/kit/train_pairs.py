"""The Trainer's ``run_fn`` on small generated examples, in a process like a node's."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from pipeline.config.label import Label
from pipeline.training.callbacks import StepCallback
from pipeline.training.run_fn import run_fn
from sluice import interrupt
from tests.kit.trainings import fn_args
from tests.kit.transform_output import FEATURES, Output

# The epoch, from 0, in whose middle a training is disturbed.
EPOCH = 1


def train(folder: str, data: str, settings: dict[str, Any], label: str = "y") -> None:
    """Trains, and writes to ``folder``: the model, its run, and how it ended.

    Args:
      folder: also tells the callback ``Wait`` when to go on.
      data: has the files of the splits.
      settings: the section ``train`` of the config.
      label: the feature, ``z`` for a regression.
    """
    interrupt.listen()
    features, dtype = FEATURES, "int64"
    if label == "z":
        given = Label(feature="z", task="regression")
        features, dtype = FEATURES.model_copy(update={"label": given}), "float32"
    output = Output({"a": "float32", label: dtype})
    vars(tft)["TFTransformOutput"] = lambda path: output
    model = f"{__name__}:build_model"
    try:
        run_fn(fn_args(settings, features, model, data, folder))
        end = "done"
    except interrupt.Interrupted:
        end = "interrupted"
    Path(folder, "end").write_text(end)


def build_model(inputs: Any, params: dict[str, Any]) -> tf.keras.Model:
    """A dense model with batch normalization, whose state each replica has its own."""
    value = tf.keras.Input((1,), name="a_xf")
    hidden = tf.keras.layers.Dense(4, activation="tanh")(value)
    hidden = tf.keras.layers.BatchNormalization()(hidden)
    return tf.keras.Model({"a_xf": value}, inputs.output_layer()(hidden))


class Wait(StepCallback):
    """Waits once, in the middle of an epoch, for what the test does meanwhile."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = Path(folder)
        self._epoch = 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        waiting = self._folder / "waiting"
        task = json.loads(os.environ["TF_CONFIG"])["task"]
        leads = task["index"] == 0
        if self._epoch < EPOCH or batch < 1 or not leads or waiting.exists():
            return
        waiting.touch()
        while not (self._folder / "go").exists():
            time.sleep(0.01)
