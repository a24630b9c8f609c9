"""Turns the transformed features into one vector per record for dense layers."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipeline.models.model_inputs import ModelInputs

MAX_EMBEDDING = 16


def embed_features(inputs: ModelInputs, keras_inputs: dict[str, Any]) -> Any:
    """Returns a float tensor ``[batch, width]``.

    Numeric features are taken as they are, images flattened, and each categorical
    feature is embedded in ``min(16, ids ** 0.5)`` dimensions or more.
    """
    layers = tf.keras.layers
    columns = []
    for name, tensor in keras_inputs.items():
        ids = inputs.number_of_ids.get(name)
        if ids is not None:
            width = min(MAX_EMBEDDING, round(ids**0.5) + 1)
            tensor = layers.Embedding(ids, width, name=f"{name}_embedding")(tensor)
        columns.append(layers.Flatten(name=f"{name}_flat")(tensor))
    return columns[0] if len(columns) == 1 else layers.Concatenate()(columns)
