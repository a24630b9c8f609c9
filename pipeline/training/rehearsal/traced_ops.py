"""Ops of a traced step, each with its layer and line of code.

Ops of the backward pass belong to the layer and line of their forward op, ops in the
body of a loop or a function to those of the op that calls it, if they have none of
their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline.training.rehearsal.source_lines import SourceLines

_GRADIENT = "gradient_tape/"
_NUMBER = re.compile(r"_\d+$")


@dataclass(frozen=True)
class TracedOp:
    """An op of a step.

    Attributes:
      op: the op.
      layer: name and class of its layer, or None.
      location: ``file:line`` of the project's code, or None.
    """

    op: tf.Operation
    layer: str | None
    location: str | None


class TracedOps:
    """Finds the ops of a model's steps, with layers and lines.

    Args:
      model: the model.
      lines: has recorded where its layers were made.
    """

    def __init__(self, model: tf.keras.Model, lines: SourceLines) -> None:
        layers = tf.keras.layers.Layer
        self._lines = lines
        self._layers = {
            module.name: module
            for module in (model, *model.submodules)
            if isinstance(module, layers)
        }

    def of(self, graph: Any) -> list[TracedOp]:
        """Returns the ops of a function's graph, of its loops and functions too."""
        return list(self._walk(graph, None))

    def _walk(self, graph: Any, caller: TracedOp | None) -> Iterator[TracedOp]:
        ops = {op.name: op for op in graph.get_operations()}
        for op in ops.values():
            traced = self._locate(op, ops, caller)
            yield traced
            for body in _bodies(op):
                yield from self._walk(body, traced)

    def _locate(
        self, op: tf.Operation, ops: dict[str, Any], caller: TracedOp | None
    ) -> TracedOp:
        layer = self._layer_of(op.name)
        location = self._lines.of_op(op) or self._forward_line(op.name, ops)
        if location is None and layer is not None:
            location = self._lines.of_layer(layer)
        shown = f"{layer.name!r} ({type(layer).__name__})" if layer else None
        if caller is not None:
            shown, location = shown or caller.layer, location or caller.location
        return TracedOp(op, shown, location)

    def _layer_of(self, name: str) -> Any | None:
        """Returns the innermost layer whose name is a part of an op's."""
        for part in reversed(name.split("/")[:-1]):
            # A layer's second call is numbered.
            for candidate in (part, _NUMBER.sub("", part)):
                if candidate in self._layers:
                    return self._layers[candidate]
        return None

    def _forward_line(self, name: str, ops: dict[str, Any]) -> str | None:
        """Returns the line of the forward op of an op of the backward pass."""
        if not name.startswith(_GRADIENT):
            return None
        forward = name.removeprefix(_GRADIENT)
        while forward:
            if forward in ops:
                return self._lines.of_op(ops[forward])
            forward = forward.rpartition("/")[0]
        return None


def _bodies(op: tf.Operation) -> Iterator[Any]:
    """Yields the graphs of the functions that an op calls."""
    for definition in op.op_def.attr:
        if definition.type not in ("func", "list(func)"):
            continue
        value = op.get_attr(definition.name)
        for function in value if isinstance(value, list) else [value]:
            # There is no public way from a function's name to its graph.
            known = op.graph._functions.get(function.name)
            if known is not None:
                yield known.graph
