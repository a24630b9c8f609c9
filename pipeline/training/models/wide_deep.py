"""Wide and deep for tabular data: a linear model and a perceptron, trained jointly.

Source: Cheng et al., Wide & Deep Learning for Recommender Systems, 2016
(arXiv:1606.07792).
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipeline.training.models import ModelInputs
from pipeline.training.models.dense import embedded, hidden_layers


def build_model(inputs: ModelInputs, params: dict[str, Any]) -> tf.keras.Model:
    """Returns the model.

    Categorical and multi-hot features feed both sides, numbers the deep side.
    ``params`` are ``DenseParams``.
    """
    layers = tf.keras.layers
    keras_inputs = inputs.keras_inputs()
    deep = hidden_layers(inputs, keras_inputs, params)
    # An embedding of width 1 is a linear weight per category.
    wide = [
        layers.Flatten()(embedded(keras_inputs[name], ids, 1))
        for name, ids in inputs.number_of_ids.items()
    ]
    wide += [
        keras_inputs[name]
        for name, spec in inputs.feature_set.transformed.items()
        if spec.kind == "multi_hot" and name in keras_inputs
    ]
    joined = layers.Concatenate()([deep, *wide]) if wide else deep
    return tf.keras.Model(keras_inputs, inputs.output_layer()(joined))
