"""Accelerator check: whether a TPU would take a training, without having one.

XLA compiles the train and eval step on this machine's CPU: a TPU compiles the step, and
the loop around it runs on the host. No data, no workspace and no accelerator is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from pipeline.checks.traced_preprocessing import TracedPreprocessing
from pipeline.config.config import Config
from pipeline.config.train import TPU_MULTIPLE
from pipeline.training.build import build_model, model_inputs
from pipeline.training.compile import compile_model
from pipeline.training.fine_tune import freeze, unfreeze
from pipeline.training.models import ModelInputs
from pipeline.training.strategy.distribution import (
    TPU_STEPS_PER_EXECUTION,
    Distribution,
)
from schemas.loader import load
from sluice.errors import ConfigError, SluiceError
from sluice.secrets import resolve

# A TPU slice of v2 or v3 has at least 8.
REPLICAS = 8
_STEPS_PER_EPOCH = 1000
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")


def check_on_tpu(config: Config) -> None:
    """Compiles the steps of a config's training, with eight replicas of a TPU.

    Everything runs on the CPU. A process that has used a GPU before cannot do this.

    Raises:
      ConfigError: a TPU would refuse the training.
    """
    tf.config.set_visible_devices([], "GPU")
    doing = ""
    try:
        for step in _steps(config):
            doing = step
    except Exception as error:  # The user's code may raise anything.
        what = f"{type(error).__name__}: {error}"
        if isinstance(error, SluiceError):
            what = error.what
        raise ConfigError(
            f"the training cannot run on a TPU: {doing}: {what}",
            where=config.origin.file,
            hint="keep to ops and dtypes of the accelerator in the model; what "
            "needs the host belongs in 'preprocessing'",
        ) from error


def _steps(config: Config) -> Iterator[str]:
    """Checks step by step, and yields before each what its exception would mean."""
    train, features = config.train, config.feature_set
    yield "the batch cannot be divided"
    size = train.global_batch_size(REPLICAS, TPU_MULTIPLE) // REPLICAS
    steps = train.steps_per_execution or TPU_STEPS_PER_EXECUTION
    replica = Distribution(tf.distribute.get_strategy(), "tpu", "", size, steps)
    function = config.preprocessing_path
    yield f"{function} does not give the model's inputs"
    transformed = TracedPreprocessing(function, load(config.schema_path), features)
    inputs = model_inputs(features, transformed)
    yield f"{config.model_path} cannot build the model"
    params = resolve(config.model_params)
    if config.weights_file is not None:
        params = {**params, "weights": str(config.weights_file)}
    model = build_model(
        config.model_path,
        params,
        inputs,
        replica,
        seed=train.seed,
        precision=train.precision,
    )
    if train.fine_tune is not None:
        yield "no such layers can be frozen"
        freeze(model, train.fine_tune.freeze)
        if train.fine_tune.unfreeze_after is not None:
            # The second phase has all ops of the first one.
            unfreeze(model, train.fine_tune.freeze)
    yield "the model cannot be compiled"
    compile_model(
        model,
        train,
        features.label,
        steps_per_epoch=_STEPS_PER_EPOCH,
        distribution=replica,
    )
    model.optimizer.build(model.trainable_variables)
    # As the input makes them: an evaluation in full batches is padded.
    own = train.sample_weight is not None
    for name, step, weighted in (
        ("train", model.train_step, own or train.class_weights is not None),
        ("eval", model.test_step, own or replica.full_batches),
    ):
        yield f"XLA cannot compile the {name} step"
        _compile(step, _batch_spec(inputs, size, weighted=weighted))


def _batch_spec(inputs: ModelInputs, batch_size: int, *, weighted: bool) -> Any:
    """Returns the specs of (features, labels) or (features, labels, weights)."""
    features = {
        name: tf.TensorSpec((batch_size, *shape), inputs.dtypes[name])
        for name, shape in inputs.shapes.items()
    }
    labels = tf.TensorSpec((batch_size, inputs.units), tf.float32)
    if inputs.feature_set.label.task == "classification":
        labels = tf.TensorSpec((batch_size, 1), tf.int64)
    weights = tf.TensorSpec((batch_size,), tf.float32)
    return (features, labels, weights) if weighted else (features, labels)


def _compile(step: Any, batch: Any) -> None:
    """Compiles a step with XLA for the CPU; raises ConfigError with the first error."""

    # The compiler's interface takes no nested specs.
    @tf.function(jit_compile=True)
    def run_step(*tensors: tf.Tensor) -> Any:
        return step(tf.nest.pack_sequence_as(batch, tensors))

    make = run_step.experimental_get_compiler_ir(*tf.nest.flatten(batch))
    try:
        make(stage="hlo", platform_name="CPU")
    except (ValueError, tf.errors.OpError) as error:
        message = str(error).removeprefix("Failed getting HLO text: '")
        first, nodes = message.partition("\n")[0], _NODE.findall(message)
        named = not nodes or nodes[-1] in first
        raise ConfigError(first if named else f"{first} ({nodes[-1]})") from error
