"""The train and eval step of a model, traced with static shapes, and their ops."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from pipeline.training.models import ModelInputs

_NODE = re.compile(r"\{\{node ([^}]+)\}\}")
_COMPILER_PREFIX = "Failed getting HLO text: '"


def batch_spec(inputs: ModelInputs, batch_size: int, *, weighted: bool) -> Any:
    """Returns the specs of (features, class ids) or (features, class ids, weights)."""
    features = {
        name: tf.TensorSpec((batch_size, *shape), inputs.dtypes[name], name=name)
        for name, shape in inputs.shapes.items()
    }
    labels = tf.TensorSpec((batch_size, 1), tf.int64)
    weights = tf.TensorSpec((batch_size,), tf.float32)
    return (features, labels, weights) if weighted else (features, labels)


class TracedStep:
    """A step that is traced as ``fit`` traces it, without its data set.

    Raises:
      Exception: whatever the user's code raises when it is traced.
    """

    def __init__(self, model: tf.keras.Model, name: str, batch: Any, xla: bool) -> None:
        step = model.train_step if name == "train" else model.test_step

        def run_step(*tensors: tf.Tensor) -> Any:
            return step(tf.nest.pack_sequence_as(batch, tensors))

        # The compiler's interface takes no nested specs.
        self._specs = tf.nest.flatten(batch)
        self._function = tf.function(run_step, jit_compile=xla)
        self.graph = self._function.get_concrete_function(*self._specs).graph

    def compile(self) -> str | None:
        """Compiles it with XLA for the CPU, and returns the first error."""
        try:
            compiler_ir = self._function.experimental_get_compiler_ir(*self._specs)
            compiler_ir(stage="hlo", platform_name="CPU")
            return None
        except (ValueError, tf.errors.OpError) as error:
            message = str(error).removeprefix(_COMPILER_PREFIX)
        if message.startswith("RET_CHECK"):
            # Of a table, whose op is only named when the step is called.
            try:
                self._function(*[tf.zeros(x.shape, x.dtype) for x in self._specs])
            except tf.errors.OpError as error:
                message = str(error)
        first, nodes = message.partition("\n")[0], _NODE.findall(message)
        return first if not nodes or nodes[-1] in first else f"{first} ({nodes[-1]})"


def ops_of(graph: Any) -> Iterator[tf.Operation]:
    """Yields the ops of a function, and those of its loops and functions."""
    for op in graph.get_operations():
        yield op
        for definition in op.op_def.attr:
            if definition.type not in ("func", "list(func)"):
                continue
            value = op.get_attr(definition.name)
            for function in value if isinstance(value, list) else [value]:
                # There is no public way from a function's name to its graph
                # (TensorFlow 2.16 and 2.21).
                known = graph._get_function(function.name)
                if known is not None:
                    yield from ops_of(known.graph)
