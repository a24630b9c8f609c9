"""``run_fn`` of TFX's Trainer: input, build, compile, fit and export.

Each step is a module of this package that can be called on its own.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
import time
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from pipeline.config.feature_set import FeatureSet
from pipeline.config.train import Train
from pipeline.training.build import (
    ModelSettings,
    build_model,
    copy_weights,
    model_inputs,
)
from pipeline.training.callbacks.make_callbacks import CallbackSettings, make_callbacks
from pipeline.training.callbacks.non_finite_loss import explaining
from pipeline.training.compile import CompileSettings, compile_model
from pipeline.training.export import ExportSettings, export_model, write_model_run
from pipeline.training.fine_tune import FineTuneSettings, fine_tuning_phases
from pipeline.training.fit import FitSettings, fit_model
from pipeline.training.input.training_input import InputSettings, make_input
from pipeline.training.progress import ReportProgress, write_facts
from pipeline.training.strategy.choice import TF_CONFIG
from pipeline.training.strategy.distribution import Distribution
from pipeline.training.strategy.task_process import beat
from pipeline.training.strategy.workers import distribute
from pipeline.training.warm_start import warm_start
from sluice import interrupt, progress
from sluice.compat import exclude_keras_from_autograph
from sluice.errors import NodeError
from sluice.secrets import resolve
from sluice.storage import digest
from sluice.storage.storage import storage_for

_DISTRIBUTION = (
    "strategy",
    "batch_size",
    "batch_per_replica",
    "steps_per_execution",
    "replicas",
    "processes",
    "parameter_servers",
    "devices",
    "deterministic",
)


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of a training, one part for each step.

    Attributes:
      own_checkpoints: directory of the checkpoints, if no runner has chosen and will
        delete it.
    """

    feature_set: FeatureSet
    transform_graph_dir: str
    model_run_dir: str
    input: InputSettings
    model: ModelSettings
    warm_start: str | None
    base_model: str | None
    fine_tune: FineTuneSettings | None
    compile: CompileSettings
    fit: FitSettings
    own_checkpoints: str | None
    callbacks: CallbackSettings
    export: ExportSettings

    @classmethod
    def from_fn_args(cls, fn_args: Any) -> TrainingSettings:
        """Reads ``tfx.components.FnArgs`` and its custom config."""
        config = fn_args.custom_config
        train, model_run_dir = config["train"], fn_args.model_run_dir
        fine_tune = train["fine_tune"]
        own_checkpoints = _own_checkpoints(fn_args)
        return cls(
            feature_set=FeatureSet.from_dict(config["feature_set"]),
            transform_graph_dir=fn_args.transform_graph_path,
            model_run_dir=model_run_dir,
            input=InputSettings(
                train_files=fn_args.train_files,
                eval_files=fn_args.eval_files,
                seed=train["seed"],
                class_weights=train["class_weights"],
                **train["input"],
            ),
            model=ModelSettings(
                model=config["model"],
                params=resolve(config["model_params"]),
                seed=train["seed"],
                precision=train["precision"],
            ),
            warm_start=train["warm_start"],
            base_model=config.get("warm_start_path") or fn_args.base_model,
            fine_tune=FineTuneSettings(**fine_tune) if fine_tune else None,
            compile=CompileSettings.from_config(train),
            fit=FitSettings(
                epochs=train["epochs"],
                checkpoint_dir=own_checkpoints
                or os.environ.get(interrupt.CHECKPOINT_DIR),
            ),
            own_checkpoints=own_checkpoints,
            callbacks=CallbackSettings(
                early_stopping=train["early_stopping"],
                stopping_from=(fine_tune or {}).get("unfreeze_after") or 0,
                reduce_on_plateau=train["reduce_on_plateau"],
                callbacks=train["callbacks"],
                tensorboard=train["tensorboard"],
                tensorboard_dir=os.path.join(model_run_dir, "tensorboard"),
                sensitive=config.get("sensitive", ()),
                own_preprocessing=config["own_preprocessing"],
            ),
            export=ExportSettings(
                directory=fn_args.serving_model_dir,
                all_raw_features=config["own_preprocessing"],
            ),
        )


def run_fn(fn_args: Any) -> None:
    """Trains and exports a model.

    Writes the SavedModel to ``fn_args.serving_model_dir``, and to
    ``fn_args.model_run_dir`` the weights, the history and TensorBoard's logs. Training
    resumes from the checkpoints in ``SLUICE_CHECKPOINT_DIR``, which the runner sets, or
    in a folder of this training in the bucket of the pipeline.

    Raises:
      Interrupted: the node was asked to stop.
    """
    exclude_keras_from_autograph()
    settings = TrainingSettings.from_fn_args(fn_args)
    if settings.own_checkpoints:
        # A service ends a container with SIGTERM, half a minute before it kills it.
        interrupt.listen()
    given = fn_args.custom_config["train"]
    train = Train.model_validate({key: given[key] for key in _DISTRIBUTION})
    distribute(train, functools.partial(_train, settings))
    if os.environ.get(TF_CONFIG):
        wait_for_model(fn_args.serving_model_dir)


def wait_for_model(directory: str, timeout_s: float = 1800.0) -> None:
    """Waits until the chief has exported the model, in a worker of another machine.

    TFX's executor runs in each of them, and fails where there is no model at its end.

    Raises:
      NodeError: it is not there in time.
    """
    deadline = time.monotonic() + timeout_s
    while not tf.io.gfile.exists(directory):
        if time.monotonic() > deadline:
            raise NodeError(
                "the chief of the training has not exported the model",
                where=directory,
                expected=f"within {timeout_s:g} s after the last step",
                hint="see the chief's log",
            )
        time.sleep(min(2.0, timeout_s))


def _train(settings: TrainingSettings, distribution: Distribution) -> None:
    if distribution.is_chief:
        progress.report(event="strategy", line=distribution.line)
        _train_and_export(settings, distribution)
        return
    # It must write with the chief, as weights are gathered from all workers, but what
    # it writes is of no use.
    with tempfile.TemporaryDirectory() as folder:
        settings = replace(
            settings,
            fit=replace(settings.fit, saved_to=folder),
            callbacks=replace(settings.callbacks, tensorboard_dir=folder),
        )
        _train_and_export(settings, distribution)


def _train_and_export(settings: TrainingSettings, distribution: Distribution) -> None:
    features = settings.feature_set
    beat()
    transform = tft.TFTransformOutput(settings.transform_graph_dir)
    training_input = make_input(settings.input, features, transform, distribution)
    beat()
    inputs = model_inputs(features, transform)
    model = build_model(settings.model, inputs, distribution)
    beat()

    def undistributed() -> tf.keras.Model:
        """Returns the model, or one on this process' own device in float32."""
        here = tf.distribute.get_strategy()
        if distribution.strategy is here and settings.model.precision == "float32":
            return model
        return build_model(
            replace(settings.model, precision="float32"),
            inputs,
            replace(distribution, strategy=here),
        )

    if settings.warm_start is not None:
        initial = undistributed()
        warm_start(initial, settings.warm_start, settings.base_model)
        copy_weights(initial, model)
        beat()

    def compile_with(compiled: CompileSettings) -> None:
        compile_model(
            model,
            compiled,
            features.label,
            steps_per_epoch=training_input.steps_per_epoch,
            distribution=distribution,
        )

    phases = None
    if settings.fine_tune is not None:
        phases = fine_tuning_phases(
            model, settings.fine_tune, settings.compile, compile_with
        )
    compile_with(settings.compile)
    reported = ReportProgress(settings.fit.epochs, training_input, distribution)
    callbacks = make_callbacks(
        settings.callbacks, features, training_input, distribution
    )
    with explaining(callbacks):
        history = fit_model(
            model, training_input, settings.fit, [*callbacks, reported], phases
        )
    if distribution.is_chief:
        directory = settings.model_run_dir
        write_facts(model, reported, training_input, distribution, directory, callbacks)
    beat()
    # TensorFlow cannot export variables of several workers, and a served model has no
    # use for those of several replicas, or for the precision of an accelerator.
    exported = undistributed()
    copy_weights(model, exported)
    if distribution.is_chief:
        write_model_run(exported, history, settings.model_run_dir)
        beat()
        export_model(exported, settings.export, features, transform)
        if settings.own_checkpoints:
            with contextlib.suppress(OSError):
                folder = settings.own_checkpoints
                storage_for(folder).delete_tree(folder)


def _own_checkpoints(fn_args: Any) -> str | None:
    """Returns the directory of a training's checkpoints; None if the runner has it.

    A service that repeats the node, or runs the pipeline again, gives it the same
    config and inputs. Their addresses are of tasks that ran in the same image.
    """
    folder = fn_args.custom_config.get("checkpoints")
    if not folder or os.environ.get(interrupt.CHECKPOINT_DIR):
        return None
    inputs = [
        fn_args.custom_config,
        list(fn_args.train_files),
        list(fn_args.eval_files),
        fn_args.transform_graph_path,
        fn_args.base_model,
    ]
    return f"{folder}/{digest.of_bytes(json.dumps(inputs, sort_keys=True).encode())}"
