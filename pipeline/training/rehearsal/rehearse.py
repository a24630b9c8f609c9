"""Rehearses the train and eval step of a config for an accelerator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.config import Config
from pipeline.config.feature_set import FeatureSet
from pipeline.config.resolve_features import feature_set_of
from pipeline.training.build import (
    ModelSettings,
    build_model,
    compile_model,
    model_inputs,
)
from pipeline.training.models import ModelInputs
from pipeline.training.rehearsal.check_step import check_for_gpu, check_for_tpu
from pipeline.training.rehearsal.result import (
    Accelerator,
    Finding,
    Rehearsal,
    merge_findings,
)
from pipeline.training.rehearsal.source_lines import SourceLines
from pipeline.training.rehearsal.steps import batch_spec, trace_step
from pipeline.training.rehearsal.traced_ops import TracedOps
from pipeline.training.rehearsal.traced_preprocessing import TracedPreprocessing
from sluice.secrets import resolve

PREPROCESSING = "pipeline.training.preprocessing:preprocessing_fn"
# Its value does not change the step.
_LEARNING_RATE = 0.001
TPU_REPLICAS = 8
TPU_STEPS_PER_EXECUTION = 50

UNCHECKED = {
    "tpu": (
        "ops and dtypes that XLA takes on the CPU but not on a TPU",
        "the TPU's memory, speed and numerical differences",
        "the connection to the TPU, and the input pipeline on its host",
    ),
    "gpu": (
        "the GPU's memory, speed and numerical differences",
        "its driver and CUDA libraries (see sluice doctor)",
        "the input pipeline",
    ),
}

# AutoGraph repeats the error and the lines of the user's code in its message.
_AUTOGRAPH_ERROR = re.compile(r"^ +(\w*(?:Error|Exception): .+)$", re.M)
_AUTOGRAPH_LINE = re.compile(r'^ +File "(.+)", line (\d+), in .+', re.M)


class _Stop(Exception):
    """The rehearsal cannot go on after what it has found."""


@dataclass
class _Rehearsal:
    """A rehearsal in progress."""

    config: Config
    schema: schema_pb2.Schema
    accelerator: Accelerator
    lines: SourceLines
    findings: list[Finding] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)

    def run(self, batch_size: int, steps_per_execution: int) -> None:
        features = feature_set_of(self.config, self.schema)
        inputs = self._inputs(features)
        self.findings += self._check_inputs(inputs)
        model = self._model(inputs, features)
        self.findings += _check_outputs(model)
        traced_ops = TracedOps(model, self.lines)
        tpu = self.accelerator == "tpu"
        check = check_for_tpu if tpu else check_for_gpu
        for name in ("train", "eval"):
            # The last batch of an evaluation is padded where shapes are static.
            batch = batch_spec(inputs, batch_size, weighted=tpu and name == "eval")
            try:
                with self._explained(f"the {name} step cannot be traced"):
                    step = trace_step(
                        model,
                        name,
                        batch,
                        steps_per_execution=steps_per_execution,
                        xla=tpu,
                    )
            except _Stop:
                continue
            self.findings += check(step, traced_ops.of(step.graph))

    def _inputs(self, features: FeatureSet) -> ModelInputs:
        function = self.config.preprocessing or PREPROCESSING
        with self._explained(f"{function} cannot be traced"):
            transformed = TracedPreprocessing(function, self.schema, features)
            self.assumptions += transformed.assumptions
            return model_inputs(features, transformed)

    def _check_inputs(self, inputs: ModelInputs) -> Iterator[Finding]:
        strings = [key for key, dtype in inputs.dtypes.items() if dtype == tf.string]
        if strings:
            what = "preprocessing returns strings, which only the host can hold"
            yield Finding(
                self.accelerator == "tpu", f"{what}: {', '.join(sorted(strings))}"
            )

    def _model(self, inputs: ModelInputs, features: FeatureSet) -> tf.keras.Model:
        config = self.config
        settings = ModelSettings(
            config.model_path, resolve(config.model_params), seed=config.train.seed
        )
        what = f"{config.model_path} cannot build the model"
        with self._explained(what), self.lines.record_layers():
            model = build_model(settings, inputs)
        compile_model(model, features, _LEARNING_RATE)
        model.optimizer.build(model.trainable_variables)
        return model

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Turns an exception of the user's code into a finding, and stops."""
        try:
            yield
        except Exception as error:
            self.findings.append(_explain(what, error, self.lines))
            raise _Stop from error


def rehearse(
    config: Config, schema: schema_pb2.Schema, accelerator: Accelerator
) -> Rehearsal:
    """Traces the steps of a config's training, and compiles them for a TPU.

    Everything runs on the CPU. A process that has used a GPU before cannot do this.

    Args:
      config: as ``validate_config`` returns it.
      schema: the reviewed schema.
      accelerator: ``tpu`` or ``gpu``.
    """
    tf.config.set_visible_devices([], "GPU")
    train, tpu = config.train, accelerator == "tpu"
    rehearsal = _Rehearsal(config, schema, accelerator, SourceLines(config.root))
    replicas = TPU_REPLICAS if tpu else 1
    if train.batch_per_replica is None:
        rehearsal.assumptions.append(f"{replicas} replica{'s' * (replicas > 1)}")
    batch_size = train.batch_per_replica or (train.batch_size or 128) // replicas
    steps = train.steps_per_execution or (TPU_STEPS_PER_EXECUTION if tpu else 1)
    policy = tf.keras.mixed_precision.global_policy()
    tf.keras.mixed_precision.set_global_policy(train.precision)
    try:
        rehearsal.run(batch_size, steps)
    except _Stop:
        pass
    finally:
        tf.keras.mixed_precision.set_global_policy(policy)
    how = "compiled by XLA" if tpu else "traced"
    return Rehearsal(
        accelerator,
        f"train and eval step {how}: batch of {batch_size} per replica, "
        f"{train.precision}, {steps} step{'s' * (steps > 1)} per execution",
        merge_findings(rehearsal.findings),
        tuple(rehearsal.assumptions),
        UNCHECKED[accelerator],
    )


def _explain(what: str, error: Exception, lines: SourceLines) -> Finding:
    """Returns the finding for an exception of the user's code."""
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
