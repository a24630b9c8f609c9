"""Checks the train and eval step of a config for an accelerator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

import tensorflow as tf
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.config import Config
from pipeline.config.train import TPU_MULTIPLE, batch_note
from pipeline.training.accelerator_check.traced_preprocessing import TracedPreprocessing
from pipeline.training.accelerator_check.traced_step import (
    TracedStep,
    batch_spec,
    ops_of,
)
from pipeline.training.build import build_model, model_inputs
from pipeline.training.compile import compile_model
from pipeline.training.fine_tune import freeze, unfreeze
from pipeline.training.strategy.distribution import (
    TPU_STEPS_PER_EXECUTION,
    Distribution,
)
from sluice.errors import NodeError, SluiceError
from sluice.secrets import resolve

PREPROCESSING = "pipeline.training.preprocessing:preprocessing_fn"
# Of a TPU; a slice of v2 or v3 has at least 8.
REPLICAS = 8
# Only the data tells it. It changes constants of a schedule.
_STEPS_PER_EPOCH = 1000

UNCHECKED = {
    "tpu": (
        "ops and dtypes that XLA takes on the CPU but not on a TPU",
        "the TPU's memory, speed and numerical differences",
        "the connection to the TPU, its replicas' communication, and the input",
    ),
    "gpu": (
        "the GPU's memory, speed and numerical differences",
        "its driver and CUDA libraries (see sluice doctor)",
        "communication between replicas, and the input",
    ),
}

_HOST_CALLS = {
    "EagerPyFunc": "tf.py_function",
    "PyFunc": "tf.numpy_function",
    "PyFuncStateless": "tf.numpy_function",
    "PrintV2": "tf.print",
    "StringFormat": "tf.print",
}
_WIDE = (tf.float64, tf.complex128)
# Those with a kernel of XLA whose outputs have a size that depends on values.
_DYNAMIC = ("DynamicPartition", "NonMaxSuppressionV3", "Unique", "UniqueV2", "Where")


@dataclass(frozen=True)
class AcceleratorCheck:
    """What an accelerator refuses in a training, or may refuse.

    Attributes:
      checked: what was compiled or traced, in a line.
      refused: with which training would fail.
      warnings: with which it may fail, or be slow.
      assumptions: what only the data or the accelerator would tell.
      unchecked: what cannot be checked on this machine.
    """

    accelerator: str
    checked: str
    refused: tuple[str, ...]
    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]
    unchecked: tuple[str, ...]


class _Stop(Exception):
    """The check cannot go on after what it has found."""


def check_accelerator(
    config: Config, schema: schema_pb2.Schema, accelerator: Literal["tpu", "gpu"]
) -> AcceleratorCheck:
    """Traces the steps of a config's training, and compiles them for a TPU.

    Everything runs on the CPU. A process that has used a GPU before cannot do this.
    """
    tf.config.set_visible_devices([], "GPU")
    check = _Check(config, schema, accelerator)
    with suppress(_Stop):
        check.run()
    return AcceleratorCheck(
        accelerator,
        check.checked,
        tuple(dict.fromkeys(check.refused)),
        tuple(dict.fromkeys(check.warnings)),
        tuple(check.assumptions),
        UNCHECKED[accelerator],
    )


class _Check:
    """A check in progress; the attributes are those of its result."""

    def __init__(
        self, config: Config, schema: schema_pb2.Schema, accelerator: str
    ) -> None:
        self.refused: list[str] = []
        self.warnings: list[str] = []
        self.assumptions: list[str] = []
        self._config, self._schema, self._accelerator = config, schema, accelerator
        self._distribution = self._distribute()

    @property
    def checked(self) -> str:
        """What is compiled or traced."""
        tpu = self._accelerator == "tpu"
        steps = self._distribution.steps_per_execution
        size = self._distribution.batch_size
        parts = [
            self._config.train.precision,
            f"{steps} step{'s' * (steps > 1)} per execution",
            (batch_note(size) if tpu else None) or f"{size} examples per replica",
        ]
        how = "compiled by XLA" if tpu else "traced"
        return f"train and eval step {how}: {', '.join(parts)}"

    def run(self) -> None:
        """Looks for findings.

        Raises:
          _Stop: the last one ends the rehearsal.
        """
        config, train = self._config, self._config.train
        features = config.feature_set
        function = config.preprocessing or PREPROCESSING
        with self._explained(f"{function} does not give the model's inputs"):
            transformed = TracedPreprocessing(function, self._schema, features)
            inputs = model_inputs(features, transformed)
        self.assumptions += transformed.assumptions
        params = resolve(config.model_params)
        if config.weights_file is not None:
            params = {**params, "weights": str(config.weights_file)}
        what = f"{config.model_path} cannot build the model"
        with self._explained(what):
            model = build_model(
                config.model_path,
                params,
                inputs,
                self._distribution,
                seed=train.seed,
                precision=train.precision,
            )
        for tensor in model.outputs or ():
            if tensor.dtype != tf.float32:
                self.warnings.append(
                    f"the model's output is {tensor.dtype.name}: give its last layer "
                    "dtype='float32', so that loss and metrics are computed in it"
                )
        if train.fine_tune is not None:
            with self._explained("no such layers can be frozen"):
                freeze(model, train.fine_tune.freeze)
            if train.fine_tune.unfreeze_after is not None:
                # The second phase has all ops of the first one.
                unfreeze(model, train.fine_tune.freeze)
        with self._explained("the model cannot be compiled"):
            compile_model(
                model,
                train,
                features.label,
                steps_per_epoch=_STEPS_PER_EPOCH,
                distribution=self._distribution,
            )
        model.optimizer.build(model.trainable_variables)
        # As TrainingInput makes them: an evaluation with static shapes is padded.
        own = train.sample_weight is not None
        weighted = {
            "train": own or train.class_weights is not None,
            "eval": own or self._distribution.static_shapes,
        }
        for name in ("train", "eval"):
            batch = batch_spec(
                inputs, self._distribution.batch_size, weighted=weighted[name]
            )
            with suppress(_Stop):
                self._check_step(model, name, batch)
            if self.refused:  # The eval step would mostly repeat it.
                break

    def _distribute(self) -> Distribution:
        """Returns the distribution of one replica, as on the accelerator."""
        train, tpu = self._config.train, self._accelerator == "tpu"
        if train.strategy != "auto" and tpu != (train.strategy == "tpu"):
            name = self._accelerator.upper()
            what = f"with train.strategy {train.strategy} no {name} would be used"
            self.warnings.append(what)
        replicas = REPLICAS if tpu else 1
        try:
            batch_size = train.global_batch_size(replicas, TPU_MULTIPLE if tpu else 1)
        except NodeError as error:
            # On fewer replicas it may be divisible.
            what = f"{error.what}; try {error.hint}"
            replicas, batch_size = 1, train.global_batch_size(1)
            refused = batch_size % TPU_MULTIPLE > 0
            (self.refused if refused else self.warnings).append(what)
        if train.batch_per_replica is None:
            self.assumptions.append(f"{replicas} replica{'s' * (replicas > 1)}")
        return Distribution(
            strategy=tf.distribute.get_strategy(),
            kind="tpu" if tpu else "one_device",
            line="",
            batch_size=batch_size // replicas,
            steps_per_execution=train.steps_per_execution
            or (TPU_STEPS_PER_EXECUTION if tpu else 1),
        )

    def _check_step(self, model: tf.keras.Model, name: str, batch: Any) -> None:
        tpu = self._accelerator == "tpu"
        with self._explained(f"the {name} step cannot be traced"):
            step = TracedStep(model, name, batch, xla=tpu)
        layers = {module.name for module in model.submodules}
        called, wide, dynamic = [], [], []
        for op in ops_of(step.graph):
            if op.type in _HOST_CALLS:
                called.append(f"{_HOST_CALLS[op.type]} in {op.name}")
            # Keras' own ops, such as Unique for the gradient of a lookup, run on TPUs.
            if not tpu or not layers.intersection(op.name.split("/")[:-1]):
                continue
            if any(tensor.dtype in _WIDE for tensor in op.outputs):
                wide.append(op.name)
            if op.type in _DYNAMIC:
                dynamic.append(op.name)
        for what, ops, found in (
            (
                "the host would be called within the step",
                called,
                self.refused if tpu else self.warnings,
            ),
            ("a TPU may refuse 64-bit floats", wide, self.warnings),
            (
                "a TPU may refuse outputs whose size depends on values",
                dynamic,
                self.warnings,
            ),
        ):
            if ops:
                more = f" and {len(ops) - 5} more" if len(ops) > 5 else ""
                found.append(f"{name} step: {what}: {', '.join(ops[:5])}{more}")
        if tpu and not called and (error := step.compile()):
            self.refused.append(f"{name} step: XLA cannot compile it: {error}")

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Turns an exception of the user's code into a refusal, and stops."""
        try:
            yield
        except Exception as error:
            kind = "" if isinstance(error, SluiceError) else f"{type(error).__name__}: "
            self.refused.append(f"{what}: {kind}{error}")
            raise _Stop from error
