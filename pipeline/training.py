"""What the Trainer runs: data in, a trained and exported model out.

Sets no policy of its own: epochs, batch size and the model come from the config, by
way of ``custom_config`` (``feature_set``, ``own_preprocessing``, ``model``,
``model_params``, ``train``).
"""

from __future__ import annotations

import importlib
import math
import time
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from pipeline.export import export_model
from pipeline.feature_set import FeatureSet
from pipeline.input_pipeline import make_dataset
from pipeline.models.model_inputs import ModelInputs
from pipeline.preprocessing import number_of_ids
from pipeline.strategy import choose_strategy
from sluice import atomic, progress
from sluice.compat import teach_autograph

CATEGORICAL = ("bucketized", "vocabulary", "hashed")
HISTORY_FILE = "history.json"


def run_fn(fn_args: Any) -> None:
    """Trains and exports; called by TFX's Trainer.

    Writes the SavedModel to ``fn_args.serving_model_dir``, and to
    ``fn_args.model_run_dir`` the weights (``model.weights.h5``), ``history.json``
    and TensorBoard's logs.

    Args:
      fn_args: tfx.components.FnArgs.
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
    history = model.fit(
        make_dataset(
            fn_args.train_files,
            tf_transform_output,
            feature_set,
            shuffle_seed=train["seed"],
            **common,
        ),
        validation_data=make_dataset(
            fn_args.eval_files, tf_transform_output, feature_set, **common
        ),
        epochs=train["epochs"],
        callbacks=_callbacks(train, Path(fn_args.model_run_dir)),
        verbose=0,
    )
    run_dir = Path(fn_args.model_run_dir)
    run_dir.mkdir(parents=True, exist_ok=True)
    model.save_weights(str(run_dir / "model.weights.h5"))
    epochs = {
        name: [float(value) if math.isfinite(value) else None for value in values]
        for name, values in history.history.items()
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
    """Reports each epoch's metrics and duration to whoever watches the run."""

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self._epoch_start = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        progress.report(
            event="epoch",
            epoch=epoch + 1,
            epochs=self.params["epochs"],
            duration_s=time.monotonic() - self._epoch_start,
            metrics={name: float(value) for name, value in (logs or {}).items()},
        )


def _callbacks(train: dict[str, Any], run_dir: Path) -> list[Any]:
    callbacks: list[Any] = [
        ReportEpochs(),
        tf.keras.callbacks.TensorBoard(str(run_dir / "tensorboard"), write_graph=False),
    ]
    if train["early_stopping"]:
        callbacks.append(
            tf.keras.callbacks.EarlyStopping(
                monitor="val_loss",
                patience=train["early_stopping"]["patience"],
                restore_best_weights=True,
            )
        )
    return callbacks
