"""Keras: the layers of a model."""

from __future__ import annotations

from typing import Any


def nested_layers(layer: Any) -> list[Any]:
    """Returns the layers in a layer or model of Keras 3, at any depth.

    Why: ``layers`` of a model lists those of the first level, and a layer has none.
    Upstream: ``_flatten_layers`` in keras/src/layers/layer.py.
    Checked with: Keras 3.12 and 3.15.
    Without it: layers within layers are not frozen, and their tables not exported.
    """
    return list(layer._flatten_layers(include_self=False))


def inbound_nodes(layer: Any) -> list[Any]:
    """Returns a node of the graph for each call of a layer of a functional model.

    Why: ``inbound_nodes`` is public in tf_keras only.
    Upstream: ``_inbound_nodes`` in keras/src/ops/operation.py.
    Checked with: tf_keras 2.16 and 2.21, Keras 3.12 and 3.15.
    Without it: a warm start cannot move the weights of categories.
    """
    return list(layer._inbound_nodes)
