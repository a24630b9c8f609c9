"""A small convolutional network for one image feature."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipeline.config.model_params import CnnParams
from pipeline.training.models import ModelInputs


def build_model(inputs: ModelInputs, params: dict[str, Any]) -> tf.keras.Model:
    """Returns the model.

    Args:
      inputs: the transformed features; exactly one is an image.
      params: ``CnnParams``.
    """
    settings = CnnParams.model_validate(params)
    layers = tf.keras.layers
    keras_inputs = inputs.keras_inputs()
    x = keras_inputs[next(iter(inputs.feature_set.images))]
    for filters in settings.filters:
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
            # Keras' default of 0.99 needs hundreds of steps before it holds.
            x = layers.BatchNormalization(momentum=0.9)(x)
            x = layers.Activation("relu")(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Flatten()(x)
    x = layers.Dense(settings.dense_units, activation="relu")(x)
    x = layers.Dropout(settings.dropout)(x)
    return tf.keras.Model(keras_inputs, inputs.output_layer()(x))
