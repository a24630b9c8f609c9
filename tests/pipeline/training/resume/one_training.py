"""A training or a search in a process of its own, as in a node's.

``conftest`` forks it from the tests' server, by the name of its function.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from pipeline.config.label import Label
from pipeline.config.train import Train
from pipeline.training import checkpoint
from pipeline.training import run_fn as training
from sluice import interrupt
from tests.kit.trainings import fn_args
from tests.kit.transform_output import FEATURES, Output

STOPPED = 42
# The job of this process, and the number of batches so far in train and in eval.
JOB: Any = None
COUNTS = {"train": 0, "eval": 0}


class Tripwire(tf.keras.layers.Layer):
    """Sends this process a signal in the given step of training or of validation."""

    @tf.autograph.experimental.do_not_convert
    def call(self, x: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        split, at = ("train", JOB.at_step) if training else ("eval", JOB.at_eval_step)

        def count(x: tf.Tensor) -> None:
            COUNTS[split] += 1
            if COUNTS[split] == at:
                os.kill(os.getpid(), JOB.signal)

        if at:
            tf.py_function(count, [x], [])  # fed by the data: once per batch
        return tf.identity(x)


def build_model(inputs: Any, params: dict[str, Any]) -> tf.keras.Model:
    """Has moving averages beside its weights."""
    return _build(tf.keras, Tripwire(), inputs)


def _build(module: Any, tripwire: Any, inputs: Any) -> Any:
    keras_inputs = inputs.keras_inputs(module)
    x = tripwire(keras_inputs["a_xf"])
    x = module.layers.Dense(8, activation="relu")(x)
    x = module.layers.BatchNormalization()(x)
    return module.Model(keras_inputs, inputs.output_layer(module)(x))


class OwnStep(keras.Model):
    """Computes its steps by itself."""

    def train_step(self, data: Any) -> Any:
        x, y, weights = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            predicted = self(x, training=True)
            loss = self.compute_loss(x, y, predicted, weights)
        trained = self.trainable_weights
        self.optimizer.apply(tape.gradient(loss, trained), trained)
        return self.compute_metrics(x, y, predicted, weights)


def build_own_keras_3(inputs: Any, params: dict[str, Any]) -> keras.Model:
    """Has a layer and a step of its own, random layers, and normalization."""
    keras_inputs = inputs.keras_inputs(keras)
    x = keras.layers.GaussianNoise(0.5)(Tripwire3()(keras_inputs["a_xf"]))
    x = keras.layers.Dense(8, activation="relu")(x)
    x = keras.layers.BatchNormalization(momentum=0.5)(x)
    x = keras.layers.Dropout(0.2)(x)
    return OwnStep(keras_inputs, inputs.output_layer(keras)(x))


def build_equal(inputs: Any, params: dict[str, Any]) -> tf.keras.Model:
    """Has the same initial weights as ``build_equal_keras_3``."""
    return _with_weights(build_model(inputs, params))


def build_equal_keras_3(inputs: Any, params: dict[str, Any]) -> keras.Model:
    """Is a model of Keras 3."""
    return _with_weights(build_keras_3(inputs, params))


def _with_weights(model: Any) -> Any:
    shapes, random = [x.shape for x in model.weights], np.random.default_rng(1)
    model.set_weights([np.abs(random.normal(size=shape)) for shape in shapes])
    return model


@keras.saving.register_keras_serializable("tests")
class Tripwire3(keras.layers.Layer):
    """``Tripwire`` of Keras 3."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_jit = False  # XLA cannot call Python.

    def call(self, x: Any, training: bool | None = None) -> Any:
        return Tripwire.call(self, x, training)


def build_keras_3(inputs: Any, params: dict[str, Any]) -> keras.Model:
    """``build_model`` with Keras 3."""
    return _build(keras, Tripwire3(), inputs)


class Subclassed(tf.keras.Model):
    """Has no inputs of its own: its first batch builds it."""

    def __init__(self, output: Any) -> None:
        super().__init__()
        self._tripwire, self._output = Tripwire(), output
        self._hidden = tf.keras.layers.Dense(8, activation="relu")

    def call(self, features: dict[str, tf.Tensor], training: Any = None) -> tf.Tensor:
        x = self._tripwire(features["a_xf"], training=training)
        return self._output(self._hidden(x))


def build_subclassed(inputs: Any, params: dict[str, Any]) -> tf.keras.Model:
    return Subclassed(inputs.output_layer())


def run(job: dict[str, Any]) -> None:
    """Trains, or searches; ends the process with ``STOPPED`` if it was asked to."""
    global JOB
    JOB = SimpleNamespace(**job)
    os.environ["SLUICE_PROGRESS_FILE"] = f"{JOB.work}/progress.jsonl"
    if JOB.checkpoints:
        os.environ["SLUICE_CHECKPOINT_DIR"] = f"{JOB.work}/checkpoints"
    checkpoint.SAVE_EVERY = JOB.save_every
    features, dtypes = FEATURES, {"a": "float32", "y": "int64"}
    if JOB.label == "z":
        label = Label(feature="z", task="regression")
        features, dtypes = (
            features.model_copy(update={"label": label}),
            {"a": "float32", "z": "float32"},
        )
    training.tft = SimpleNamespace(  # type: ignore[assignment]
        TFTransformOutput=lambda path: Output(dtypes, width=4)
    )
    if JOB.export == "killed":
        training.export_model = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
    elif JOB.export == "none":
        training.export_model = lambda *a, **k: None
    interrupt.listen()
    config = {"batch_size": 8, "learning_rate": 0.01, "deterministic": True}
    config |= JOB.train
    model, output = f"{__name__}:{JOB.model}", f"{JOB.work}/out"
    given = fn_args(config, features, model, JOB.data, output)
    try:
        if JOB.tune:
            search(given, output)
        else:
            training.run_fn(given)
    except interrupt.Interrupted:
        sys.exit(STOPPED)


def search(given: Any, output: str) -> None:
    """Searches, as TFX's Tuner does."""
    from pipeline.config.tune import Tune
    from pipeline.training.strategy.distribution import choose_distribution
    from pipeline.training.tuning import Search

    tf.config.experimental.enable_op_determinism()
    given.working_dir = output
    given.custom_config["tune"] = Tune.model_validate(JOB.tune).model_dump()
    distribution = choose_distribution(
        Train.model_validate(given.custom_config["train"])
    )
    found = Search(given, distribution, os.environ["SLUICE_CHECKPOINT_DIR"])
    found.search(verbose=0)
    with open(f"{output}/best.json", "w") as file:
        json.dump(found.get_best_hyperparameters()[0].get_config(), file)
