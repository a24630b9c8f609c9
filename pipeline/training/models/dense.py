"""Multilayer perceptron over any features; also the deep part of wide and deep."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipeline.config.train import DenseParams
from pipeline.training.models import ModelInputs

MAX_EMBEDDING = 16


def build_model(inputs: ModelInputs, params: dict[str, Any]) -> tf.keras.Model:
    """Returns the model; ``params`` are ``DenseParams``."""
    keras_inputs = inputs.keras_inputs()
    deep = hidden_layers(inputs, keras_inputs, params)
    return tf.keras.Model(keras_inputs, inputs.output_layer()(deep))


def hidden_layers(
    inputs: ModelInputs, keras_inputs: dict[str, Any], params: dict[str, Any]
) -> Any:
    """Returns a float tensor ``[batch, units of the last layer]``.

    Numbers are taken as they are, vectors and images flattened, and each categorical
    feature is embedded in ``ids ** 0.5 + 1`` dimensions, 16 at most.
    """
    given = DenseParams.model_validate(params)
    layers = tf.keras.layers
    columns = []
    for name, tensor in keras_inputs.items():
        ids = inputs.number_of_ids.get(name)
        if ids is not None:
            width = min(MAX_EMBEDDING, round(ids**0.5) + 1)
            tensor = layers.Embedding(ids, width)(tensor)
        columns.append(layers.Flatten()(tensor))
    x = columns[0] if len(columns) == 1 else layers.Concatenate()(columns)
    for units in given.hidden_units:
        x = layers.Dense(units, activation="relu")(x)
        x = layers.Dropout(given.dropout)(x)
    return x
