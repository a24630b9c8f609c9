"""A multilayer perceptron over any features; images are flattened."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipeline.models.embed_features import embed_features
from pipeline.models.model_inputs import ModelInputs


def build_model(inputs: ModelInputs, params: dict[str, Any]) -> tf.keras.Model:
    """Returns the model.

    Args:
      inputs: the transformed features.
      params: ``hidden_units`` (list of layer widths) and ``dropout`` (fraction).
    """
    layers = tf.keras.layers
    keras_inputs = inputs.keras_inputs()
    x = embed_features(inputs, keras_inputs)
    for units in params.get("hidden_units", [128, 64]):
        x = layers.Dense(units, activation="relu")(x)
        x = layers.Dropout(params.get("dropout", 0.1))(x)
    return tf.keras.Model(keras_inputs, inputs.output_layer()(x))
