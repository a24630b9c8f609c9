"""What the Trainer runs: data in, a trained and exported model out.

Sets no policy of its own: epochs, batch size and the model come from the config, by
way of ``custom_config`` (``feature_set``, ``own_preprocessing``, ``model``,
``model_params``, ``train``).
"""

from __future__ import annotations

import functools
import importlib
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from pipeline.config.feature_set import FeatureSet
from pipeline.training.checkpoint import Checkpoint
from pipeline.training.export import export_model
from pipeline.training.input_pipeline import make_dataset
from pipeline.training.models.model_inputs import ModelInputs
from pipeline.training.preprocessing import number_of_ids
from pipeline.training.strategy import choose_strategy
from sluice import interrupt, progress
from sluice.compat import teach_autograph
from sluice.storage import atomic

CATEGORICAL = ("bucketized", "vocabulary", "hashed")
HISTORY_FILE = "history.json"


def run_fn(fn_args: Any) -> None:
    """Trains and exports; called by TFX's Trainer.

    Writes the SavedModel to ``fn_args.serving_model_dir``, and to
    ``fn_args.model_run_dir`` the weights (``model.weights.h5``), ``history.json``
    and TensorBoard's logs. Where the runner gives a directory for it, training keeps
    checkpoints there and goes on from them; see ``pipeline.training.checkpoint``.

    Args:
      fn_args: tfx.components.FnArgs.

    Raises:
      Interrupted: the node was asked to stop.
    """
    teach_autograph()
    config = fn_args.custom_config
    train = config["train"]
    feature_set = FeatureSet.from_dict(config["feature_set"])
    tf_transform_output = tft.TFTransformOutput(fn_args.transform_graph_path)
    tf.keras.utils.set_random_seed(train["seed"])
    strategy, why = choose_strategy()
    progress.report(event="strategy", line=why)
    with strategy.scope():
        build_model = load_function(config["model"])
        inputs = model_inputs(feature_set, tf_transform_output)
        model = build_model(inputs, dict(config["model_params"]))
        compile_model(model, feature_set, train["learning_rate"])
    common = {"batch_size": train["batch_size"]}
    run_dir = Path(fn_args.model_run_dir)
    history = _fit(
        model,
        functools.partial(
            make_dataset,
            fn_args.train_files,
            tf_transform_output,
            feature_set,
            shuffle_seed=train["seed"],
            **common,
        ),
        make_dataset(fn_args.eval_files, tf_transform_output, feature_set, **common),
        train,
        run_dir,
    )
    run_dir.mkdir(parents=True, exist_ok=True)
    model.save_weights(str(run_dir / "model.weights.h5"))
    epochs = {
        name: [float(value) if math.isfinite(value) else None for value in values]
        for name, values in history.items()
    }
    atomic.write_json(run_dir / HISTORY_FILE, epochs)
    export_model(
        model,
        tf_transform_output,
        feature_set,
        fn_args.serving_model_dir,
        all_raw_features=config["own_preprocessing"],
    )


def load_function(import_path: str) -> Any:
    """Returns the function that ``package.module:function`` names."""
    module, _, name = import_path.partition(":")
    return getattr(importlib.import_module(module), name)


def model_inputs(feature_set: FeatureSet, tf_transform_output: Any) -> ModelInputs:
    """Describes the transformed features for ``build_model``; see ``ModelInputs``."""
    spec = tf_transform_output.transformed_feature_spec()
    spec.pop(feature_set.label.key)
    sparse = [
        name for name, item in spec.items() if isinstance(item, tf.io.VarLenFeature)
    ]
    if sparse:
        raise ValueError(
            f"preprocessing must return dense tensors; these are sparse: {sparse}"
        )
    shapes = {name: tuple(item.shape) for name, item in spec.items()}
    dtypes = {name: item.dtype for name, item in spec.items()}
    for name, feature in feature_set.images.items():
        options = feature.options
        shapes[name] = (options["height"], options["width"], options["channels"])
        dtypes[name] = tf.float32
    return ModelInputs(
        feature_set=feature_set,
        shapes=shapes,
        dtypes=dtypes,
        number_of_ids={
            feature.key: number_of_ids(feature, tf_transform_output)
            for feature in feature_set.features
            if feature.kind in CATEGORICAL and feature.key in shapes
        },
    )


def compile_model(
    model: tf.keras.Model, feature_set: FeatureSet, learning_rate: float
) -> None:
    """Sets Adam and the cross-entropy that fits the number of classes."""
    binary = len(feature_set.label.classes) == 2
    keras = tf.keras
    model.compile(
        optimizer=keras.optimizers.Adam(learning_rate),
        loss="binary_crossentropy" if binary else "sparse_categorical_crossentropy",
        metrics=["binary_accuracy", keras.metrics.AUC(name="auc")]
        if binary
        else ["sparse_categorical_accuracy"],
    )


class ReportEpochs(tf.keras.callbacks.Callback):
    """Reports each epoch's metrics and duration to whoever watches the run.

    Args:
      epochs: how many there are at most in the whole training.
    """

    def __init__(self, epochs: int) -> None:
        super().__init__()
        self._epochs = epochs

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self._epoch_start = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        progress.report(
            event="epoch",
            epoch=epoch + 1,
            epochs=self._epochs,
            duration_s=time.monotonic() - self._epoch_start,
            metrics={name: float(value) for name, value in (logs or {}).items()},
        )


def _fit(
    model: tf.keras.Model,
    make_train_data: Callable[[], tf.data.Dataset],
    eval_data: tf.data.Dataset,
    train: dict[str, Any],
    run_dir: Path,
) -> dict[str, list[float]]:
    """Trains, or goes on with it, and returns each metric's value by epoch."""
    epochs = train["epochs"]
    history = tf.keras.callbacks.History()
    early_stopping = _early_stopping(train)
    callbacks: list[Any] = [
        ReportEpochs(epochs),
        tf.keras.callbacks.TensorBoard(str(run_dir / "tensorboard"), write_graph=False),
        *([early_stopping] if early_stopping else []),
        history,
    ]
    fit = functools.partial(model.fit, validation_data=eval_data, verbose=0)
    directory = os.environ.get(interrupt.CHECKPOINT_DIR)
    if not directory:
        fit(make_train_data(), epochs=epochs, callbacks=callbacks)
        return history.history
    checkpoint = Checkpoint(Path(directory), model, epochs, history, early_stopping)
    callbacks.append(checkpoint)

    def fit_rest(until: int) -> None:
        data, epoch = checkpoint.rest_of(make_train_data), checkpoint.epoch
        fit(data, initial_epoch=epoch, epochs=until, callbacks=callbacks)

    with interrupt.cooperative():
        if checkpoint.restore():
            checkpoint.report_restored()
        if checkpoint.batch:
            fit_rest(until=checkpoint.epoch + 1)
            # At the end of a fit early stopping has set the best weights.
            checkpoint.restore()
        fit_rest(until=epochs)
    return history.history


def _early_stopping(train: dict[str, Any]) -> tf.keras.callbacks.EarlyStopping | None:
    if not train["early_stopping"]:
        return None
    return tf.keras.callbacks.EarlyStopping(
        monitor="val_loss",
        patience=train["early_stopping"]["patience"],
        restore_best_weights=True,
    )
