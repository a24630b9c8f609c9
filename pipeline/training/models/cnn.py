"""A small convolutional network for one image feature."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipeline.training.models import ModelInputs


def build_model(inputs: ModelInputs, params: dict[str, Any]) -> tf.keras.Model:
    """Returns the model.

    Args:
      inputs: the transformed features; exactly one is an image.
      params: ``filters`` (list, one block of two convolutions and a pooling each),
        ``dense_units`` and ``dropout`` (fraction).
    """
    layers = tf.keras.layers
    keras_inputs = inputs.keras_inputs()
    x = keras_inputs[next(iter(inputs.feature_set.images))]
    for filters in params.get("filters", [32, 64]):
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
            # Keras' default of 0.99 needs hundreds of steps before it holds.
            x = layers.BatchNormalization(momentum=0.9)(x)
            x = layers.Activation("relu")(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Flatten()(x)
    x = layers.Dense(params.get("dense_units", 128), activation="relu")(x)
    x = layers.Dropout(params.get("dropout", 0.3))(x)
    return tf.keras.Model(keras_inputs, inputs.output_layer()(x))
