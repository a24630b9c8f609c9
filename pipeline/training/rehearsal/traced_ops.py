"""Ops of a traced step, each with its layer and line of code.

Ops of the backward pass belong to the layer and line of their forward op, ops in the
body of a loop or a function to those of the op that calls it, if they have none of
their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from pipeline.training.rehearsal.source_lines import SourceLines

_GRADIENT = "gradient_tape/"
_NUMBER = re.compile(r"_\d+$")


class TracedOp:
    """An op of a step. Its layer and line are looked up when they are asked for."""

    def __init__(
        self,
        op: tf.Operation,
        graph: Mapping[str, tf.Operation],
        caller: TracedOp | None,
        origins: Origins,
    ) -> None:
        self.op = op
        self._graph, self._caller, self._origins = graph, caller, origins

    @property
    def layer(self) -> str | None:
        """Name and class of its layer, or None."""
        layer = self._origins.layer(self.op.name)
        if layer is not None:
            return f"{layer.name!r} ({type(layer).__name__})"
        return self._caller.layer if self._caller else None

    @property
    def location(self) -> str | None:
        """``file:line`` of the project's code, or None."""
        line = self._origins.line(self.op, self._graph)
        return line or (self._caller.location if self._caller else None)


class Origins:
    """Finds the layer and the line of code of an op."""

    def __init__(self, model: tf.keras.Model, lines: SourceLines) -> None:
        self._lines = lines
        self._layers = {
            module.name: module
            for module in (model, *model.submodules)
            if isinstance(module, tf.keras.layers.Layer)
        }

    def layer(self, name: str) -> tf.keras.layers.Layer | None:
        """Returns the innermost layer whose name is a part of an op's."""
        for part in reversed(name.split("/")[:-1]):
            # A layer's second call is numbered.
            for candidate in (part, _NUMBER.sub("", part)):
                if candidate in self._layers:
                    return self._layers[candidate]
        return None

    def line(self, op: tf.Operation, graph: Mapping[str, tf.Operation]) -> str | None:
        """Returns the line of an op, of its forward op, or that made its layer."""
        forward = op.name.removeprefix(_GRADIENT)
        while forward and forward not in graph:
            forward = forward.rpartition("/")[0]
        line = self._lines.of_op(graph.get(forward, op)) or self._lines.of_op(op)
        if line is not None:
            return line
        layer = self.layer(op.name)
        return None if layer is None else self._lines.of_layer(layer)


def traced_ops(
    graph: Any, origins: Origins, caller: TracedOp | None = None
) -> Iterator[TracedOp]:
    """Yields the ops of a function, and those of its loops and functions."""
    ops = {op.name: op for op in graph.get_operations()}
    for op in ops.values():
        traced = TracedOp(op, ops, caller, origins)
        yield traced
        for body in _bodies(op):
            yield from traced_ops(body, origins, traced)


def _bodies(op: tf.Operation) -> Iterator[Any]:
    """Yields the graphs of the functions that an op calls."""
    for definition in op.op_def.attr:
        if definition.type not in ("func", "list(func)"):
            continue
        value = op.get_attr(definition.name)
        for function in value if isinstance(value, list) else [value]:
            # There is no public way from a function's name to its graph (TensorFlow
            # 2.16 and 2.21).
            known = op.graph._get_function(function.name)
            if known is not None:
                yield known.graph
