"""Preprocessing with tensorflow_transform: one rule per kind of feature.

Images stay encoded: decoded float pixels need 200 times the disk space of a small PNG.
A missing value is 0 (the mean) after a z-score, and id 0 of a categorical feature,
whose categories start at 1.

A user's own function (``preprocessing: package.module:function``) has the same
signature, may call this one, and must return the label under its transformed name, and
with ``train.sample_weight`` the weights as ``sample_weight``.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from pipeline.config.features import (
    SAMPLE_WEIGHT_KEY,
    FeatureSet,
    Label,
    identifier,
    transformed_name,
)

MISSING_ID = 0
NO_LABEL = -1


def preprocessing_fn(
    inputs: dict[str, Any], custom_config: dict[str, Any]
) -> dict[str, tf.Tensor]:
    """Transforms raw features.

    Args:
      inputs: raw features, dense ``[batch, 1]`` or sparse where values may be missing.
      custom_config: holds ``feature_set``, see ``pipeline.config.features``.

    Returns:
      Transformed features, ``[batch, 1]`` (numeric: float32; categorical: int64 ids;
      image: the encoded bytes), the label's class ids, int64 ``[batch, 1]``, and the
      weights of the examples, float32 ``[batch, 1]``, if there are some.
    """
    feature_set = FeatureSet.model_validate(custom_config["feature_set"])
    outputs = {
        transformed_name(name): _transformed(name, spec, inputs[name])
        for name, spec in feature_set.features.items()
    }
    label = feature_set.label
    outputs[label.key] = class_ids(inputs[label.feature], label)
    if feature_set.sample_weight is not None:
        weight = inputs[feature_set.sample_weight]
        outputs[SAMPLE_WEIGHT_KEY] = tf.cast(weight, tf.float32)
    return outputs


def number_of_ids(name: str, spec: Any, tf_transform_output: Any) -> int:
    """Returns the number of ids of a categorical feature, including the missing one."""
    if spec.kind == "vocabulary":
        known = tf_transform_output.vocabulary_size_by_name(_vocabulary_name(name))
        return known + spec.oov_buckets + 1
    return spec.buckets + 1


def class_ids(value: Any, label: Label) -> tf.Tensor:
    """Returns the index of each label in the classes, -1 for other values."""
    values: Any = label.classes
    text = isinstance(values[0], str)
    dense = _dense(value, "" if text else tf.int64.min)
    classes = tf.constant(values, tf.string if text else tf.int64)
    matches = tf.cast(tf.equal(dense, classes), tf.int64)
    found = tf.reduce_max(matches, axis=1, keepdims=True)
    position = tf.argmax(matches, axis=1)[:, tf.newaxis]
    return tf.where(found > 0, position, tf.constant(NO_LABEL, tf.int64))


def _transformed(name: str, spec: Any, value: Any) -> tf.Tensor:
    match spec.kind:
        case "image":
            return _dense(value, "")
        case "numeric":
            return _dense(tft.scale_to_z_score(_map_values(value, _as_float)), 0.0)
        case "bucketized":
            ids = tft.bucketize(_map_values(value, _as_float), spec.buckets)
        case "vocabulary":
            ids = tft.compute_and_apply_vocabulary(
                value,
                top_k=spec.top_k,
                num_oov_buckets=spec.oov_buckets,
                vocab_filename=_vocabulary_name(name),
            )
        case "hashed":
            ids = _map_values(value, lambda x: _hashed(x, spec.buckets))
    shifted = _map_values(ids, lambda x: tf.cast(x, tf.int64) + MISSING_ID + 1)
    return _dense(shifted, tf.constant(MISSING_ID, tf.int64))


def _vocabulary_name(name: str) -> str:
    """Returns the file name of a feature's vocabulary."""
    return identifier(transformed_name(name))


def _as_float(value: tf.Tensor) -> tf.Tensor:
    return tf.cast(value, tf.float32)


def _hashed(value: tf.Tensor, buckets: int) -> tf.Tensor:
    text = value if value.dtype == tf.string else tf.strings.as_string(value)
    return tf.strings.to_hash_bucket_fast(text, buckets)


def _map_values(value: Any, function: Any) -> Any:
    if isinstance(value, tf.sparse.SparseTensor):
        return tf.sparse.SparseTensor(
            value.indices, function(value.values), value.dense_shape
        )
    return function(value)


def _dense(value: Any, missing: Any) -> tf.Tensor:
    """Returns ``[batch, 1]``, with ``missing`` where a record has no value."""
    if not isinstance(value, tf.sparse.SparseTensor):
        return value
    column = tf.sparse.SparseTensor(
        value.indices, value.values, [value.dense_shape[0], 1]
    )
    return tf.sparse.to_dense(column, default_value=missing)
