"""Rehearses the train and eval step of a config for an accelerator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import tensorflow as tf
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.batch_size import TPU_MULTIPLE, batch_note, global_batch_size
from pipeline.config.config import Config
from pipeline.config.resolve_features import feature_set_of
from pipeline.training.build import build_model, model_inputs
from pipeline.training.compile import compile_model
from pipeline.training.fine_tune import freeze, unfreeze
from pipeline.training.rehearsal.check_step import check_for_gpu, check_for_tpu
from pipeline.training.rehearsal.result import (
    Accelerator,
    Finding,
    Rehearsal,
    merge_findings,
)
from pipeline.training.rehearsal.source_lines import SourceLines
from pipeline.training.rehearsal.steps import batch_spec, trace_step
from pipeline.training.rehearsal.traced_ops import Origins, traced_ops
from pipeline.training.rehearsal.traced_preprocessing import TracedPreprocessing
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

# AutoGraph repeats the error and the lines of the user's code in its message.
_AUTOGRAPH_ERROR = re.compile(r"^ +(\w*(?:Error|Exception): .+)$", re.M)
_AUTOGRAPH_LINE = re.compile(r'^ +File "(.+)", line (\d+), in .+', re.M)


class _Stop(Exception):
    """The rehearsal cannot go on after what it has found."""


def rehearse(
    config: Config, schema: schema_pb2.Schema, accelerator: Accelerator
) -> Rehearsal:
    """Traces the steps of a config's training, and compiles them for a TPU.

    Everything runs on the CPU. A process that has used a GPU before cannot do this.
    """
    tf.config.set_visible_devices([], "GPU")
    rehearsal = _Rehearsal(config, schema, accelerator)
    with suppress(_Stop):
        rehearsal.run()
    return Rehearsal(
        accelerator,
        rehearsal.checked,
        merge_findings(rehearsal.findings),
        tuple(rehearsal.assumptions),
        UNCHECKED[accelerator],
    )


class _Rehearsal:
    """A rehearsal in progress; the attributes are those of its result."""

    def __init__(
        self, config: Config, schema: schema_pb2.Schema, accelerator: Accelerator
    ) -> None:
        self.findings: list[Finding] = []
        self.assumptions: list[str] = []
        self._config, self._schema, self._accelerator = config, schema, accelerator
        self._lines = SourceLines(config.root)
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
        features = feature_set_of(config, self._schema)
        function = config.preprocessing or PREPROCESSING
        with self._explained(f"{function} does not give the model's inputs"):
            transformed = TracedPreprocessing(function, self._schema, features)
            inputs = model_inputs(features, transformed)
        self.assumptions += transformed.assumptions
        params = resolve(config.model_params)
        if config.weights_file is not None:
            params = {**params, "weights": str(config.weights_file)}
        what = f"{config.model_path} cannot build the model"
        with self._explained(what), self._lines.record_layers():
            model = build_model(
                config.model_path,
                params,
                inputs,
                self._distribution,
                seed=train.seed,
                precision=train.precision,
            )
        self.findings += _check_outputs(model)
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

    def _distribute(self) -> Distribution:
        """Returns the distribution of one replica, as on the accelerator."""
        train, tpu = self._config.train, self._accelerator == "tpu"
        if train.strategy != "auto" and tpu != (train.strategy == "tpu"):
            name = self._accelerator.upper()
            what = f"with train.strategy {train.strategy} no {name} would be used"
            self.findings.append(Finding(False, what))
        replicas = REPLICAS if tpu else 1
        sizes = train.batch_size, train.batch_per_replica
        try:
            multiple = TPU_MULTIPLE if tpu else 1
            batch_size = global_batch_size(*sizes, replicas, multiple=multiple)
        except NodeError as error:
            # On fewer replicas it may be divisible.
            what = f"{error.what}; try {error.hint}"
            replicas, batch_size = 1, global_batch_size(*sizes, 1)
            refused = batch_size % TPU_MULTIPLE > 0
            self.findings.append(Finding(refused, what))
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
            step = trace_step(
                model,
                name,
                batch,
                steps_per_execution=self._distribution.steps_per_execution,
                xla=tpu,
            )
        ops = list(traced_ops(step.graph, Origins(model, self._lines)))
        self.findings += (check_for_tpu if tpu else check_for_gpu)(step, ops)

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Turns an exception of the user's code into a finding, and stops."""
        try:
            yield
        except Exception as error:
            self.findings.append(_explain(what, error, self._lines))
            raise _Stop from error


def _explain(what: str, error: Exception, lines: SourceLines) -> Finding:
    """Returns the finding for an exception of the user's code."""
    if isinstance(error, SluiceError):
        parts = [error.what, *error.examples]
        parts += [f"expected {error.expected}"] if error.expected else []
        parts += [f"found {error.actual}"] if error.actual else []
        return Finding(True, f"{what}: {'; '.join(parts)}")
    text = str(error)
    reasons = _AUTOGRAPH_ERROR.findall(text)
    first = next(filter(None, text.splitlines()), "")
    reason = reasons[-1] if reasons else f"{type(error).__name__}: {first}"
    frames = [(name, int(number)) for name, number in _AUTOGRAPH_LINE.findall(text)]
    location = lines.innermost(reversed([*_frames(error), *frames]))
    return Finding(True, f"{what}: {reason}", location=location)


def _frames(error: Exception) -> Iterator[tuple[str, int]]:
    traceback: Any = error.__traceback__
    while traceback is not None:
        yield traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next


def _check_outputs(model: tf.keras.Model) -> Iterator[Finding]:
    for tensor in model.outputs or ():
        if tensor.dtype != tf.float32:
            yield Finding(
                False,
                f"the model's output is {tensor.dtype.name}: give its last layer "
                "dtype='float32', so that loss and metrics are computed in it",
            )
