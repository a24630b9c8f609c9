"""Multilayer perceptron over any features, alone or beside a linear model."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipeline.config.model_params import DenseParams
from pipeline.training.models import MeanOfWords, ModelInputs

MAX_EMBEDDING = 16
SEQUENCE_FILTERS = 64


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
    feature is embedded in ``ids ** 0.5 + 1`` dimensions, 16 at most. Of a text it is
    the mean of its words; of a sequence, a convolution over five words at a time.
    """
    settings = DenseParams.model_validate(params)
    layers = tf.keras.layers
    columns, specs = [], inputs.feature_set.transformed
    for name, tensor in keras_inputs.items():
        ids = inputs.number_of_ids.get(name)
        if ids is not None:
            width = min(MAX_EMBEDDING, round(ids**0.5) + 1)
            if getattr(specs[name], "form", None) == "sequence":
                vectors = layers.Embedding(ids, width)(tensor)
                tensor = layers.Conv1D(SEQUENCE_FILTERS, 5, padding="same")(vectors)
                tensor = layers.GlobalMaxPooling1D()(layers.ReLU()(tensor))
            else:
                tensor = embedded(tensor, ids, width)
        columns.append(layers.Flatten()(tensor))
    x = columns[0] if len(columns) == 1 else layers.Concatenate()(columns)
    for units in settings.hidden_units:
        x = layers.Dense(units, activation="relu")(x)
        x = layers.Dropout(settings.dropout)(x)
    return x


def embedded(tensor: Any, ids: int, width: int) -> Any:
    """Returns the embedding of one id ``[batch, 1, width]``, or the mean of several.

    The mean is ``[batch, width]``.
    """
    vectors = tf.keras.layers.Embedding(ids, width)(tensor)
    return vectors if tensor.shape[1] == 1 else MeanOfWords()([vectors, tensor])


def build_wide_deep(inputs: ModelInputs, params: dict[str, Any]) -> tf.keras.Model:
    """Returns wide and deep: a linear model and a perceptron, trained jointly.

    Categorical and multi-hot features feed both sides, numbers the deep side.
    ``params`` are ``DenseParams``. Source: Cheng et al., Wide & Deep Learning for
    Recommender Systems, 2016 (arXiv:1606.07792).
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
