"""Which value, feature or class each place of a model's weights belongs to.

Ids of categories are ranks by frequency, so with new records ``b`` may have the id that
``c`` had. A warm start moves weights by what they stand for. Which weights those are is
read off the graph of a functional model, layer by layer from its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import tensorflow as tf

from pipeline.training.keras_of import keras_of, weight_name
from pipeline.training.models import MeanOfWords
from pipeline.training.preprocessing import Places
from sluice.patches.keras import inbound_nodes

# What stands at a place of the input stands there in the output and in all weights.
_BY_PLACE = (
    *("Activation", "BatchNormalization", "Dropout", "ReLU"),
    *("GlobalAveragePooling1D", "GlobalMaxPooling1D"),
)


class UnknownLayer(Exception):
    """A layer that is not known takes something that differs."""


class Axis(NamedTuple):
    """What stands at each place of an axis, in the model to start from and in the new.

    The axis of ids is what each id stands for; other tensors have their last axis.
    """

    base: Places
    new: Places

    @property
    def name(self) -> str:
        """The name of the feature or vocabulary, or ``classes``."""
        return (*self.new, *self.base)[0][0]

    def kept(self) -> tuple[list[int], list[int]]:
        """Returns the places, in the base and in the new model, of what both have."""
        places = {meaning: place for place, meaning in enumerate(self.base)}
        pairs = [(places[x], i) for i, x in enumerate(self.new) if x in places]
        return [base for base, _ in pairs], [new for _, new in pairs]


def weight_axes(
    model: Any,
    inputs: Mapping[str, Axis],
    outputs: Axis,
    base: Mapping[str, Any],
) -> dict[int, tuple[Axis, ...]]:
    """Returns the last axes of weights, by ``id``; all others are positions.

    Args:
      model: the new model.
      inputs: the axes of inputs that are not positions, by transformed name.
      outputs: that of the output.
      base: the weights of the model to start from, by name.

    Raises:
      UnknownLayer: a layer that is not known takes something that differs.
    """
    layers = keras_of(model).layers
    if not getattr(model, "outputs", None):
        raise UnknownLayer(f"{model.name} is no functional model")
    by_name = {tensor.name: tensor for tensor in model.inputs}
    tensors = model.input if isinstance(model.input, dict) else by_name
    for name, axis in inputs.items():
        if axis.base != axis.new and name not in tensors:
            raise UnknownLayer(f"{name} is no input of the model")
    of_weight: dict[int, tuple[Axis, ...]] = {}
    of_tensor = {
        id(tensor): inputs.get(name) or _positions(name, *[tensor.shape[-1] or 0] * 2)
        for name, tensor in tensors.items()
    }
    for layer in model.layers:
        if isinstance(layer, layers.InputLayer):
            continue
        node, *others = inbound_nodes(layer)
        if others:
            raise UnknownLayer(f"{layer.name} is used more than once")
        taken = [(of_tensor[id(tensor)], tensor) for tensor in _inputs(node)]
        results = tf.nest.flatten(node.outputs)
        own = _positions(layer.name, *[(0, *results[0].shape)[-1] or 0] * 2)
        if layer.name == model.output_names[0]:
            own = outputs
        axes, axis = _follow(layers, layer, taken, own, base)
        for weight in layer.weights if axes else ():
            of_weight[id(weight)] = axes[-len(weight.shape) :]
        of_tensor |= {id(tensor): axis for tensor in results}
    if outputs.base != outputs.new and of_tensor[id(model.outputs[0])] is not outputs:
        raise UnknownLayer(f"{model.output_names[0]}, the last one, is no Dense layer")
    return of_weight


def _inputs(node: Any) -> Any:
    """Returns the tensors that a layer takes, of either Keras."""
    return node.keras_inputs if hasattr(node, "keras_inputs") else node.input_tensors


def _follow(
    layers: Any,
    layer: Any,
    taken: Sequence[tuple[Axis, Any]],
    own: Axis,
    base: Mapping[str, Any],
) -> tuple[tuple[Axis, ...], Axis]:
    """Returns the last axes of a layer's weights, and the axis of its output.

    Args:
      layers: the module of Keras.
      layer: the layer.
      taken: what it takes: axes and tensors.
      own: the axis of its output, unless that is made of what it takes.
      base: as in ``weight_axes``.
    """
    kind, axis, tensor = type(layer), *taken[0]
    is_last = [
        tf.as_dtype(x.dtype).is_floating and len(a.new) == x.shape[-1] for a, x in taken
    ]
    if kind is layers.Embedding and layer.input_dim == len(axis.new):
        (table,) = layer.weights
        base_width = base.get(weight_name(table), table).shape[-1]
        width = _positions(layer.name, base_width, layer.output_dim)
        return (axis, width), width
    if kind in (layers.Dense, layers.Conv1D) and all(is_last):
        return (axis, own), own
    by_place = [MeanOfWords, *(getattr(layers, name) for name in _BY_PLACE)]
    if kind in by_place and is_last[0]:
        return (axis,), axis
    if kind is layers.Flatten and all(is_last) and None not in tensor.shape[1:]:
        rows = range(math.prod(tensor.shape[1:-1]))
        return (), Axis(*(tuple((i, *x) for i in rows for x in side) for side in axis))
    last = (-1, len(tensor.shape) - 1)
    if kind is layers.Concatenate and all(is_last) and layer.axis in last:
        joined = zip(*(axis for axis, _ in taken), strict=True)
        return (), Axis(*(tuple(chain(*places)) for places in joined))
    if any(x.base != x.new for x in (own, *(axis for axis, _ in taken))):
        raise UnknownLayer(f"{layer.name}, a {kind.__name__} layer, is not known")
    return (), own


def _positions(name: str, base: int, new: int) -> Axis:
    """Returns an axis whose places are known by their positions, such as units."""
    return Axis(*(tuple((name, i) for i in range(size)) for size in (base, new)))
