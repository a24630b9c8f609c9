"""Accelerator check: whether a TPU or a GPU would take a training, without having one.

What ``fit`` traces, an execution of one or more steps, is traced on this machine's CPU,
and for a TPU the step in it is compiled by XLA: a TPU compiles the step, and the loop
around it runs on the host. No data, no workspace and no accelerator is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import tensorflow as tf

from pipeline.checks.traced_preprocessing import TracedPreprocessing
from pipeline.config.config import Config
from pipeline.config.train import TPU_MULTIPLE, Train
from pipeline.training.build import build_model, model_inputs
from pipeline.training.compile import compile_model
from pipeline.training.fine_tune import freeze, unfreeze
from pipeline.training.models import ModelInputs
from pipeline.training.strategy.distribution import (
    TPU_STEPS_PER_EXECUTION,
    Distribution,
)
from schemas.loader import load
from sluice.errors import SluiceError, bounded
from sluice.secrets import resolve

# A TPU slice of v2 or v3 has at least 8.
REPLICAS = 8
_STEPS_PER_EPOCH = 1000

_HOST_CALLS = {
    "EagerPyFunc": "tf.py_function",
    "PyFunc": "tf.numpy_function",
    "PyFuncStateless": "tf.numpy_function",
    "PrintV2": "tf.print",
    "StringFormat": "tf.print",
}
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")


@dataclass
class AcceleratorCheck:
    """What an accelerator refuses in a training, or may refuse.

    Attributes:
      checked: what was compiled or traced, in a line.
      refused: with which training would fail.
      warnings: with which it may fail, or be slow.
      assumptions: what only the data or the accelerator would tell.
    """

    accelerator: str
    checked: str = ""
    refused: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)


def check_accelerator(
    config: Config, accelerator: Literal["tpu", "gpu"]
) -> AcceleratorCheck:
    """Traces the steps of a config's training, and compiles them for a TPU.

    Everything runs on the CPU. A process that has used a GPU before cannot do this.
    """
    tf.config.set_visible_devices([], "GPU")
    check = AcceleratorCheck(accelerator)
    doing = ""
    try:
        for step in _steps(config, check):
            doing = step
    except Exception as error:  # The user's code may raise anything.
        kind = "" if isinstance(error, SluiceError) else f"{type(error).__name__}: "
        check.refused.append(f"{doing}: {kind}{error}")
    return check


def _steps(config: Config, check: AcceleratorCheck) -> Iterator[str]:
    """Checks step by step, and yields before each what its exception would mean."""
    train, features = config.train, config.feature_set
    yield "the batch cannot be divided"
    distribution = _one_replica(train, check)
    function = config.preprocessing_path
    yield f"{function} does not give the model's inputs"
    transformed = TracedPreprocessing(function, load(config.schema_path), features)
    inputs = model_inputs(features, transformed)
    check.assumptions += transformed.assumptions
    yield f"{config.model_path} cannot build the model"
    params = resolve(config.model_params)
    if config.weights_file is not None:
        params = {**params, "weights": str(config.weights_file)}
    model = build_model(
        config.model_path,
        params,
        inputs,
        distribution,
        seed=train.seed,
        precision=train.precision,
    )
    for tensor in model.outputs or ():
        if tensor.dtype != tf.float32:
            check.warnings.append(
                f"the model's output is {tensor.dtype.name}: give its last layer "
                "dtype='float32', so that loss and metrics are computed in it"
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
        distribution=distribution,
    )
    model.optimizer.build(model.trainable_variables)
    # As the input makes them: an evaluation in full batches is padded.
    own = train.sample_weight is not None
    for name, weighted in (
        ("train", own or train.class_weights is not None),
        ("eval", own or distribution.full_batches),
    ):
        yield f"the {name} step cannot be traced"
        batch = _batch_spec(inputs, distribution.batch_size, weighted=weighted)
        _check_step(model, name, batch, check)
        if check.refused:  # The eval step would mostly repeat it.
            break


def _one_replica(train: Train, check: AcceleratorCheck) -> Distribution:
    """Returns the distribution of one replica, as on the accelerator.

    Raises:
      NodeError: the batch cannot be divided over the replicas of a TPU.
    """
    tpu = check.accelerator == "tpu"
    size = train.global_batch_size(1)
    if tpu:
        size = train.global_batch_size(REPLICAS, TPU_MULTIPLE) // REPLICAS
        check.assumptions.append(f"{REPLICAS} replicas")
    steps = train.steps_per_execution or (TPU_STEPS_PER_EXECUTION if tpu else 1)
    check.checked = (
        f"executions of {steps} steps traced{' and the step compiled by XLA' * tpu}: "
        f"{train.precision}, {size} examples per replica"
    )
    kind = "tpu" if tpu else "one_device"
    return Distribution(tf.distribute.get_strategy(), kind, "", size, steps)


def _check_step(
    model: tf.keras.Model, name: str, batch: Any, check: AcceleratorCheck
) -> None:
    tpu = check.accelerator == "tpu"
    called = [
        f"{_HOST_CALLS[node.op]} in {node.name}"
        for node in _nodes_of(_trace_execution(model, name, batch))
        if node.op in _HOST_CALLS
    ]
    if called:
        listed = ", ".join(bounded(list(dict.fromkeys(called))))
        findings = check.refused if tpu else check.warnings
        findings.append(
            f"{name} step: the host would be called within the step: {listed}"
        )
    if tpu and not called and (error := _compile_step(model, name, batch)):
        check.refused.append(f"{name} step: XLA cannot compile it: {error}")


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


def _trace_execution(model: tf.keras.Model, name: str, batch: Any) -> Any:
    """Returns the graph that ``fit`` or its validation runs, with its loop of steps."""
    make = model.make_train_function if name == "train" else model.make_test_function
    dataset = tf.data.Dataset.range(1).map(lambda _: _zeros(batch))
    return tf.function(make(force=True)).get_concrete_function(iter(dataset)).graph


def _compile_step(model: tf.keras.Model, name: str, batch: Any) -> str | None:
    """Compiles a step with XLA for the CPU, and returns the first error."""
    step = model.train_step if name == "train" else model.test_step
    # The compiler's interface takes no nested specs.
    specs = tf.nest.flatten(batch)

    @tf.function(jit_compile=True)
    def run_step(*tensors: tf.Tensor) -> Any:
        return step(tf.nest.pack_sequence_as(batch, tensors))

    try:
        run_step.experimental_get_compiler_ir(*specs)(stage="hlo", platform_name="CPU")
        return None
    except (ValueError, tf.errors.OpError) as error:
        message = str(error).removeprefix("Failed getting HLO text: '")
    first, nodes = message.partition("\n")[0], _NODE.findall(message)
    return first if not nodes or nodes[-1] in first else f"{first} ({nodes[-1]})"


def _zeros(specs: Any) -> Any:
    return tf.nest.map_structure(lambda spec: tf.zeros(spec.shape, spec.dtype), specs)


def _nodes_of(graph: Any) -> Iterator[Any]:
    """Yields the operations of a function, and of the functions that it calls."""
    definition = graph.as_graph_def()
    yield from definition.node
    for function in definition.library.function:
        yield from function.node_def
