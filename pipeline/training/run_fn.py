"""``run_fn`` of TFX's Trainer: input, build, compile, fit and export.

Each step is a module of this package that can be called on its own.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from pipeline.config.features import FeatureSet
from pipeline.config.train import Train
from pipeline.config.tune import with_values
from pipeline.training.build import (
    build_model,
    copy_weights,
    model_inputs,
    set_target_scale,
)
from pipeline.training.callbacks import log_images, make_callbacks
from pipeline.training.compile import compile_model
from pipeline.training.export import export_model, write_model_run
from pipeline.training.fine_tune import fine_tuning_phases
from pipeline.training.fit import fit_model
from pipeline.training.input.training_input import Split, make_input
from pipeline.training.keras_of import keras_of
from pipeline.training.progress import ReportProgress, write_facts
from pipeline.training.shared_training import shared_training
from pipeline.training.strategy.choice import TF_CONFIG
from pipeline.training.strategy.distribution import Distribution
from pipeline.training.strategy.workers import cluster_of_run, distribute
from pipeline.training.warm_start import read_vocabularies, warm_start
from sluice import interrupt, progress
from sluice.node_environment import node_environment
from sluice.patches.tensorflow import exclude_keras_from_autograph
from sluice.secrets import resolve
from sluice.storage import digest
from sluice.storage.storage import storage_for


def run_fn(fn_args: Any) -> None:
    """Trains and exports a model.

    Writes the SavedModel to ``fn_args.serving_model_dir``, and to
    ``fn_args.model_run_dir`` the weights, the history and TensorBoard's logs. Training
    resumes from the checkpoints in the ``checkpoint_dir`` that the runner names, or
    in a folder of this training in the bucket of the pipeline.

    Raises:
      Interrupted: the node was asked to stop.
    """
    exclude_keras_from_autograph()
    train = Train.model_validate(fn_args.custom_config["train"])
    if own_checkpoints(fn_args):
        # A service ends a container with SIGTERM, half a minute before it kills it.
        interrupt.listen()
    model_params = fn_args.custom_config["model_params"]
    if fn_args.hyperparameters:
        values = fn_args.hyperparameters["values"]
        train, model_params = with_values(train, model_params, values)
    train_here = functools.partial(_train_and_export, fn_args, train, model_params)
    if cluster := cluster_of_run(train):
        with shared_training(fn_args) if cluster.is_chief else contextlib.nullcontext():
            distribute(train, train_here)
        return
    distribute(train, train_here)
    if os.environ.get(TF_CONFIG):
        wait_for_model(fn_args.serving_model_dir)


def wait_for_model(directory: str) -> None:
    """Waits until the chief has exported the model, in a worker of another machine.

    TFX's executor runs in each of them, and fails where there is no model at its end.
    Whatever has started the workers ends them if the chief fails.
    """
    while not tf.io.gfile.exists(directory):
        time.sleep(1.0)


def report_strategy(distribution: Distribution) -> None:
    """Reports how a training is distributed, if this process is its chief."""
    if distribution.is_chief:
        progress.report(event="strategy", line=distribution.line)


def train_model(
    fn_args: Any,
    train: Train,
    model_params: Mapping[str, Any],
    distribution: Distribution,
    tensorboard_dir: str,
    *,
    checkpoint_dir: str | None,
    epochs: int | None = None,
    trial: str | None = None,
) -> tuple[Any, dict[str, list[float]], Callable[[], Any]]:
    """Makes the input, and builds, compiles and fits the model.

    Args:
      fn_args: TFX's, with the config, the examples and the transform graph.
      train: the settings.
      model_params: arguments of the model function.
      distribution: how it is distributed.
      tensorboard_dir: path or address of TensorBoard's logs.
      checkpoint_dir: see ``fit_model``.
      epochs: after which it ends, before those of ``train``; None: all.
      trial: the name of the trial, for the progress; one writes no facts.

    Returns:
      The model with the weights of the last epoch, or the best if it was stopped early;
      each metric by epoch; and a function that returns the model, or one on this
      process' own device in float32 without its weights.
    """
    config = fn_args.custom_config
    features = FeatureSet.model_validate(config["feature_set"])
    transform = tft.TFTransformOutput(fn_args.transform_graph_path)
    files: dict[Split, list[str]] = {
        "train": fn_args.train_files,
        "eval": fn_args.eval_files,
    }
    inputs = model_inputs(features, transform)
    all_raw = config["own_preprocessing"]
    training_input = make_input(
        train, files, features, transform, distribution, all_raw_features=all_raw
    )
    build = functools.partial(
        build_model,
        config["model"],
        resolve(model_params),
        inputs,
        seed=train.seed,
    )
    model = build(distribution, precision=train.precision)

    def undistributed() -> Any:
        here = tf.distribute.get_strategy()
        if distribution.strategy is here and train.precision == "float32":
            return model
        return build(replace(distribution, strategy=here))

    if train.warm_start is not None:
        initial = undistributed()
        base_model = config.get("warm_start_path") or fn_args.base_model
        vocabularies = read_vocabularies(transform.transform_savedmodel_dir)
        warm_start(initial, train.warm_start, base_model, inputs, vocabularies)
        copy_weights(initial, model)
    if features.label.task == "regression":
        # Last: like the z-scores of features, the scale is that of these records.
        set_target_scale(model, *training_input.target_statistics())

    compile_with = functools.partial(
        compile_model,
        model,
        label=features.label,
        steps_per_epoch=training_input.steps_per_epoch,
        distribution=distribution,
    )
    phases = None
    if train.fine_tune is not None:
        phases = fine_tuning_phases(model, train.fine_tune, train, compile_with)
    compile_with(train)
    epochs = epochs or train.epochs
    reported = ReportProgress(epochs, training_input, distribution, trial)
    if train.tensorboard.images and distribution.is_chief:
        log_images(training_input, tensorboard_dir, train.tensorboard.images)
    callbacks = make_callbacks(train, tensorboard_dir, keras_of(model))
    history = fit_model(
        model,
        training_input,
        epochs,
        [*callbacks, reported],
        phases,
        checkpoint_dir=checkpoint_dir,
    )
    if distribution.is_chief and not trial:
        directory = fn_args.model_run_dir
        write_facts(model, reported, training_input, distribution, directory, callbacks)
    return model, history, undistributed


def _train_and_export(
    fn_args: Any,
    train: Train,
    model_params: Mapping[str, Any],
    distribution: Distribution,
) -> None:
    report_strategy(distribution)
    config, model_run_dir = fn_args.custom_config, fn_args.model_run_dir
    checkpoints = own_checkpoints(fn_args)
    model, history, undistributed = train_model(
        fn_args,
        train,
        model_params,
        distribution,
        os.path.join(model_run_dir, "tensorboard"),
        checkpoint_dir=checkpoints or node_environment().checkpoint_dir,
    )
    # TensorFlow cannot export variables of several workers, and a served model has no
    # use for those of several replicas, or for the precision of an accelerator.
    exported = undistributed()
    copy_weights(model, exported)
    if distribution.is_chief:
        write_model_run(exported, history, model_run_dir)
        export_model(
            exported,
            fn_args.serving_model_dir,
            FeatureSet.model_validate(config["feature_set"]),
            tft.TFTransformOutput(fn_args.transform_graph_path),
            all_raw_features=config["own_preprocessing"],
            eval_files=fn_args.eval_files,
        )
        if checkpoints:
            with contextlib.suppress(OSError):
                storage_for(checkpoints).delete_tree(checkpoints)


def own_checkpoints(fn_args: Any) -> str | None:
    """Returns the directory of a training's checkpoints; None if the runner has it.

    A service that repeats the node, or runs the pipeline again, gives it the same
    config and inputs. Their addresses are of tasks that ran in the same image.
    """
    folder = fn_args.custom_config.get("checkpoints")
    if not folder or node_environment().checkpoint_dir:
        return None
    inputs = [
        fn_args.custom_config,
        list(fn_args.train_files),
        list(fn_args.eval_files),
        fn_args.transform_graph_path,
        fn_args.base_model,
        fn_args.hyperparameters,
    ]
    return f"{folder}/{digest.of_bytes(json.dumps(inputs, sort_keys=True).encode())}"
