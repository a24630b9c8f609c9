"""A multilayer perceptron over any features; images are flattened."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipeline.training.models.model_inputs import ModelInputs
from pipeline.training.models.tower import tower


def build_model(inputs: ModelInputs, params: dict[str, Any]) -> tf.keras.Model:
    """Returns the model; ``params`` are those of ``tower``."""
    keras_inputs = inputs.keras_inputs()
    deep = tower(inputs, keras_inputs, params)
    return tf.keras.Model(keras_inputs, inputs.output_layer()(deep))
