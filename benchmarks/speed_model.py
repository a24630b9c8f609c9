"""Model of the stock and bare sides of ``speed.py``: what ``model: dense`` builds.

It imports no TFX, as the bare script does not.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def exclude_keras_from_autograph() -> None:
    """Keeps AutoGraph off tf_keras, as ``sluice.patches`` does."""
    from tensorflow.python.autograph.core import config

    rules = map(config.DoNotConvert, ("tf_keras", "tensorflow_transform"))
    config.CONVERSION_RULES = (*rules, *config.CONVERSION_RULES)


def decode_images(features: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Replaces an encoded ``image_xf``, ``[batch, 1]``, by float32 pixels in 0..1."""
    if "image" not in config["features"]:
        return features
    *size, channels = shape = _shape(config["features"]["image"])

    def decode(data: Any) -> Any:
        pixels = tf.io.decode_image(data, channels, expand_animations=False)
        return tf.ensure_shape(tf.image.resize(pixels, size), shape)

    encoded = tf.reshape(features["image_xf"], [-1])
    pixels = tf.map_fn(decode, encoded, fn_output_signature=tf.float32)
    return {**features, "image_xf": pixels / 255.0}


def _shape(spec: dict[str, Any]) -> tuple[int, ...]:
    is_image = spec["kind"] == "image"
    return (spec["height"], spec["width"], spec["channels"]) if is_image else (1,)


def build_model(config: dict[str, Any], vocabulary_sizes: dict[str, int]) -> Any:
    """Returns the compiled model of features that are called ``<key>_xf``.

    Args:
      config: that of our side.
      vocabulary_sizes: by feature, without the one bucket of unknown values.
    """
    layers, metrics = tf.keras.layers, tf.keras.metrics
    inputs, columns = {}, []
    for key, spec in config["features"].items():
        # One id more than there are: ours has one of missing values.
        ids = spec.get("buckets", vocabulary_sizes.get(key, -1) + 1) + 1
        name, dtype = f"{key}_xf", tf.int64 if ids > 1 else tf.float32
        column = inputs[name] = layers.Input(_shape(spec), name=name, dtype=dtype)
        if ids > 1:
            column = layers.Embedding(ids, min(16, round(ids**0.5) + 1))(column)
        columns.append(layers.Flatten()(column))
    x = columns[0] if len(columns) == 1 else layers.Concatenate()(columns)
    for units in config["model_params"]["hidden_units"]:
        x = layers.Dense(units, "relu")(x)
        x = layers.Dropout(config["model_params"]["dropout"])(x)
    if config["classes"] == 2:
        output, loss = layers.Dense(1, "sigmoid")(x), "binary_crossentropy"
        computed = [metrics.BinaryAccuracy("accuracy"), metrics.AUC(name="auc")]
    else:
        output = layers.Dense(config["classes"], "softmax")(x)
        loss = "sparse_categorical_crossentropy"
        computed = [metrics.SparseCategoricalAccuracy("accuracy")]
    model = tf.keras.Model(inputs, output)
    optimizer = tf.keras.optimizers.Adam(config["train"]["learning_rate"])
    model.compile(optimizer, loss, computed)
    return model
