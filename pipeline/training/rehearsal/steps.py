"""The train and eval step of a model as functions of a batch with static shapes.

Both are those that ``fit`` runs. Data sets and iterators are left out: they stay on the
host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline.training.models import ModelInputs


@dataclass(frozen=True)
class Step:
    """A traced step.

    Attributes:
      name: ``train`` or ``eval``.
      function: runs it on a flat list of tensors.
      specs: of these tensors.
      graph: of the function.
    """

    name: str
    function: Any
    specs: list[tf.TensorSpec]
    graph: Any

    def compile(self) -> None:
        """Compiles the step with XLA for the CPU; weights stay as they are.

        Raises:
          ValueError: XLA refuses it.
        """
        compiler_ir = self.function.experimental_get_compiler_ir(*self.specs)
        compiler_ir(stage="hlo", platform_name="CPU")


def batch_spec(inputs: ModelInputs, batch_size: int, *, weighted: bool) -> Any:
    """Returns the specs of (features, class ids) or (features, class ids, weights)."""
    features = {
        name: tf.TensorSpec((batch_size, *shape), inputs.dtypes[name], name=name)
        for name, shape in inputs.shapes.items()
    }
    labels = tf.TensorSpec((batch_size, 1), tf.int64)
    if not weighted:
        return features, labels
    return features, labels, tf.TensorSpec((batch_size,), tf.float32)


def trace_step(
    model: tf.keras.Model, name: str, batch: Any, *, steps_per_execution: int, xla: bool
) -> Step:
    """Traces a step, and the loop that executes several at a time.

    Raises:
      Exception: whatever the user's code raises when it is traced.
    """
    keras_step = model.train_step if name == "train" else model.test_step
    # The compiler's interface takes no nested specs.
    specs = tf.nest.flatten(batch)

    def run_step(*tensors: tf.Tensor) -> Any:
        return keras_step(tf.nest.pack_sequence_as(batch, tensors))

    function = tf.function(run_step, jit_compile=xla)
    graph = function.get_concrete_function(*specs).graph
    if steps_per_execution > 1:

        def run_steps(*tensors: tf.Tensor) -> Any:
            outputs = function(*tensors)
            for _ in tf.range(steps_per_execution - 1):
                outputs = function(*tensors)
            return outputs

        tf.function(run_steps).get_concrete_function(*specs)
    return Step(name, function, specs, graph)
