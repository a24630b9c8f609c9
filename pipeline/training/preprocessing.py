"""Preprocessing with tensorflow_transform: one rule per kind of feature.

Images stay encoded: decoded float pixels need 200 times the disk space of a small PNG.
NaN, infinities, the smallest int64 and the empty string are missing values, see
``is_value``. A missing value is 0 (the mean) after a z-score, and id 0 of a categorical
feature, whose categories start at 1.

A user's own function (``preprocessing: package.module:function``) has the same
signature and gets the values as they are. It may call this one, and must return the
label under its transformed name, and with ``train.sample_weight`` the weights as
``sample_weight``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from pipeline.config.features import SAMPLE_WEIGHT_KEY, Cross, FeatureSet
from pipeline.config.label import Label, transformed_name
from pipeline.training.calendar_parts import SIZES, calendar_parts

# What stands at each place of an axis: tuples of a name, and None for nothing.
Places = tuple[tuple[Any, ...], ...]

MISSING_ID = 0
NO_LABEL = -1
# What a missing value is, see also ``is_value``.
MISSING = {tf.string: "", tf.int64: tf.int64.min, tf.float32: math.nan}


def preprocessing_fn(
    inputs: dict[str, Any], custom_config: dict[str, Any]
) -> dict[str, tf.Tensor]:
    """Transforms raw features.

    Args:
      inputs: raw features, dense ``[batch, 1]`` or sparse where values may be missing.
      custom_config: holds ``feature_set``, see ``pipeline.config.features``.

    Returns:
      Transformed features, ``[batch, 1]`` but for those that are said to be longer
      (numeric: float32, ``[batch, 2]`` with ``missing_indicator``; vector: float32, of
      the schema's shape; categorical: int64 ids; multi_hot: float32 ``[batch, size]``;
      time: float32 ``[batch, 24 + 7 + 12 + 1]``, or of its parts; image, pixels: as
      they are; text: int64 ids ``[batch, length]``, 0 for padding; passthrough: as it
      is), the label as ``label_values`` returns it, and the weights of the examples,
      float32 ``[batch, 1]``, if there are some.
    """
    feature_set = FeatureSet.model_validate(custom_config["feature_set"])
    names = feature_set.vocabulary_names
    outputs = {
        transformed_name(name): _TRANSFORMS[spec.kind](names[name], spec, inputs[name])
        for name, spec in feature_set.features.items()
        if not isinstance(spec, Cross)
    }
    for name, spec in feature_set.features.items():
        if isinstance(spec, Cross):
            parts = [outputs[transformed_name(part)] for part in spec.of]
            outputs[transformed_name(name)] = _cross(spec, parts)
    label = feature_set.label
    outputs[label.key] = label_values(inputs[label.feature], label)
    if feature_set.sample_weight is not None:
        weight = inputs[feature_set.sample_weight]
        outputs[SAMPLE_WEIGHT_KEY] = tf.cast(weight, tf.float32)
    return outputs


def is_value(value: tf.Tensor) -> tf.Tensor:
    """Returns for each value whether it is none of those that stand for missing ones.

    These are NaN and infinities, the smallest int64 (NaN cast to int64), and "".
    """
    if value.dtype.is_floating:
        return tf.math.is_finite(value)
    return tf.not_equal(value, MISSING[value.dtype])


def number_of_ids(name: str, feature_set: FeatureSet, tf_transform_output: Any) -> int:
    """Returns the number of ids of a categorical feature, including the missing one."""
    spec: Any = feature_set.features[name]
    if spec.kind in ("vocabulary", "text"):
        vocabulary = feature_set.vocabulary_names[name]
        known = tf_transform_output.vocabulary_size_by_name(vocabulary)
        return known + spec.oov_buckets + 1
    return spec.buckets + 1


def feature_places(
    feature_set: FeatureSet, vocabularies: Mapping[str, Sequence[bytes]]
) -> dict[str, Places]:
    """Returns what each id of categorical features, or number of a multi-hot, means.

    Args:
      feature_set: the features.
      vocabularies: file name -> values by rank.

    Returns:
      Places by transformed name; the values of other vocabularies by file name.
    """
    features: Mapping[str, Any] = feature_set.features
    files = feature_set.vocabulary_names
    places: dict[str, Places] = {
        file: tuple((file, value) for value in values)
        for file, values in vocabularies.items()
        if file not in files.values()
    }
    # Crosses last: their ids are hashes of other ids.
    for name in sorted(features, key=lambda name: features[name].kind == "cross"):
        spec = features[name]
        meanings: list[tuple[Any, ...]] = []
        if spec.kind in ("vocabulary", "text", "multi_hot"):
            meanings = [(name, x) for x in vocabularies.get(files[name], ())]
            meanings += [(name, spec.oov_buckets, i) for i in range(spec.oov_buckets)]
        elif spec.is_categorical:
            parts = [places[transformed_name(part)] for part in getattr(spec, "of", ())]
            key = hash((repr(spec), *parts))
            meanings = [(name, key, i) for i in range(spec.buckets)]
        if spec.kind == "multi_hot":
            meanings += [(name, None, i) for i in range(spec.size - len(meanings))]
        if spec.is_categorical:
            meanings = [(name, MISSING_ID), *meanings]
        if meanings:
            places[transformed_name(name)] = tuple(meanings)
    return places


def label_values(value: Any, label: Label) -> tf.Tensor:
    """Returns what a model is trained on.

    Of a classification class ids, int64 ``[batch, 1]``, -1 for none of the classes, or
    several; of several labels 0 or 1 for each class, -1 for another number, float32
    ``[batch, classes]``; of a regression the numbers as they are, float32 ``[batch,
    targets]``.
    """
    if label.task == "regression":
        return tf.where(is_value(value), _as_float(value), math.nan)
    if label.task == "multi_label":
        return _class_indicators(value, label)
    if _is_per_class(value):
        place = tf.argmax(value, axis=1)[:, tf.newaxis]
        others = tf.math.count_nonzero(value, axis=1, keepdims=True) - 1
        is_one = (others == 0) & (tf.reduce_max(value, axis=1, keepdims=True) == 1)
        return tf.where(is_one, place, tf.constant(NO_LABEL, tf.int64))
    return class_ids(value, label)


def class_ids(value: Any, label: Label) -> tf.Tensor:
    """Returns the index of each label in the classes, -1 for other values."""
    values: Any = label.classes
    dense = _dense(value, MISSING[value.dtype])
    classes = tf.constant(values, value.dtype)
    matches = tf.cast(tf.equal(dense, classes), tf.int64)
    is_known = tf.reduce_max(matches, axis=1, keepdims=True)
    position = tf.argmax(matches, axis=1)[:, tf.newaxis]
    return tf.where(is_known > 0, position, tf.constant(NO_LABEL, tf.int64))


def _class_indicators(value: Any, label: Label) -> tf.Tensor:
    values: Any = label.classes
    if _is_per_class(value):
        is_valid = (value == 0) | (value == 1)
        return tf.where(is_valid, _as_float(value), float(NO_LABEL))
    sparse = _as_sparse(value)
    matches = tf.equal(sparse.values[:, tf.newaxis], tf.constant(values, value.dtype))
    counts = tf.math.unsorted_segment_sum(
        tf.cast(matches, tf.float32), sparse.indices[:, 0], sparse.dense_shape[0]
    )
    indicators = tf.minimum(counts, 1.0)
    return tf.ensure_shape(indicators, [None, len(values)])


def _is_per_class(value: Any) -> bool:
    """Whether a label has a value for each class, as one-hot."""
    is_list = isinstance(value, tf.sparse.SparseTensor) or value.dtype == tf.string
    return not is_list and value.shape[1] > 1


def _numeric(name: str, spec: Any, value: Any) -> tf.Tensor:
    value = _dense(value, MISSING[value.dtype])
    scaled = _scaled(spec, value, "all")
    if not spec.missing_indicator:
        return scaled
    return tf.concat([scaled, 1.0 - _as_float(is_value(value))], axis=1)


def _vector(name: str, spec: Any, value: tf.Tensor) -> tf.Tensor:
    return _scaled(spec, value, spec.scale)


def _scaled(spec: Any, value: tf.Tensor, scale: str) -> tf.Tensor:
    """Returns z-scores of each number of a row, of all, or none; 0 where missing."""
    return _z_scores(
        tf.where(is_value(value), _as_number(spec, value), math.nan), scale
    )


def _z_scores(numbers: tf.Tensor, scale: str) -> tf.Tensor:
    if scale != "none":  # Mean and variance are of finite numbers.
        numbers = tft.scale_to_z_score(numbers, elementwise=scale == "each")
    return _as_float(tf.where(tf.math.is_finite(numbers), numbers, 0.0))


def _bucketized(name: str, spec: Any, value: Any) -> tf.Tensor:
    numbers = tf.sparse.map_values(_as_float, _values(value))
    return _ids(tft.bucketize(numbers, spec.buckets))


def _vocabulary(name: str, spec: Any, value: Any) -> tf.Tensor:
    return _ids(_places(name, spec, _values(value)))


def _hashed(name: str, spec: Any, value: Any) -> tf.Tensor:
    return _ids(
        tf.sparse.map_values(
            lambda x: tf.strings.to_hash_bucket_fast(_as_text(x), spec.buckets),
            _values(value),
        )
    )


def _time(name: str, spec: Any, value: Any) -> tf.Tensor:
    value = _dense(value, MISSING[value.dtype])
    found, is_known = calendar_parts(value), is_value(value)
    columns = [
        tf.one_hot(tf.where(is_known, found[part], -1)[:, 0], SIZES[part])
        for part in spec.parts
        if part != "age"
    ]
    if "age" in spec.parts:
        days = tf.where(is_known, found["days"], math.nan)
        columns.append(_z_scores(-days, "all"))
    return tf.concat(columns, axis=1)


def _multi_hot(name: str, spec: Any, value: Any) -> tf.Tensor:
    places = _places(name, spec, _values(value))
    rows = places.dense_shape[0]
    at = tf.stack([places.indices[:, 0], places.values], axis=1)
    counts = tf.scatter_nd(at, tf.ones_like(places.values), [rows, spec.size])
    return tf.ensure_shape(tf.cast(counts > 0, tf.float32), [None, spec.size])


def _image(name: str, spec: Any, value: Any) -> tf.Tensor:
    return _dense(value, "") if value.dtype == tf.string else value


def split_words(texts: Any) -> tf.RaggedTensor:
    """Returns the words of each text, in lower case: letters, marks and digits."""
    plain = tf.strings.lower(texts, "utf-8")
    plain = tf.strings.regex_replace(plain, r"[^\p{L}\p{M}\p{N}]+", " ")
    return tf.strings.split(plain)


def _text(name: str, spec: Any, value: Any) -> tf.Tensor:
    texts = _values(value)
    rows = tf.RaggedTensor.from_value_rowids(
        _as_text(texts.values), texts.indices[:, 0], texts.dense_shape[0]
    )
    if spec.split and value.dtype == tf.string:
        rows = rows.with_values(split_words(rows.values)).merge_dims(1, 2)
    tokens = rows.to_sparse()
    if spec.form == "bag":
        tokens = tft.bag_of_words(tokens, (1, spec.ngrams), " ")
    elif spec.ngrams > 1:
        tokens = tft.ngrams(tokens, (1, spec.ngrams), " ")
    places = _places(name, spec, tokens)
    ids = tf.sparse.map_values(tf.add, places, MISSING_ID + 1)
    return tf.RaggedTensor.from_sparse(ids).to_tensor(shape=[None, spec.length])


def _passthrough(name: str, spec: Any, value: Any) -> tf.Tensor:
    missing = tf.zeros([], value.dtype)
    if spec.length is None:
        rows = _dense(value, missing)
        return tf.where(is_value(rows), rows, missing)
    rows = tf.sparse.to_dense(_as_sparse(value), missing)
    rows = tf.RaggedTensor.from_tensor(tf.where(is_value(rows), rows, missing))
    return rows.to_tensor(missing, shape=[None, spec.length])


def _cross(spec: Cross, parts: list[tf.Tensor]) -> tf.Tensor:
    text = tf.strings.join([tf.strings.as_string(part) for part in parts], " ")
    return tf.strings.to_hash_bucket_fast(text, spec.buckets) + MISSING_ID + 1


# Functions by kind: from the name of a vocabulary, the spec and the raw feature to the
# transformed one.
_TRANSFORMS: dict[str, Callable[[str, Any, Any], tf.Tensor]] = {
    "numeric": _numeric,
    "vector": _vector,
    "bucketized": _bucketized,
    "vocabulary": _vocabulary,
    "hashed": _hashed,
    "time": _time,
    "multi_hot": _multi_hot,
    "image": _image,
    "pixels": _image,
    "text": _text,
    "passthrough": _passthrough,
}


def _places(name: str, spec: Any, value: Any) -> Any:
    """Returns the place of each value in the vocabulary, from 0."""
    is_words = spec.kind == "text" and spec.split
    if value.dtype == tf.string and not is_words:
        value = tf.sparse.map_values(_on_one_line, value)
    return tft.compute_and_apply_vocabulary(
        value,
        top_k=spec.top_k,
        num_oov_buckets=spec.oov_buckets,
        vocab_filename=name,
    )


def _on_one_line(text: tf.Tensor) -> tf.Tensor:
    """Returns texts without line ends, with which TFT would leave them out.

    A line end becomes a backslash and a letter, and a backslash two of them.
    """
    text = tf.strings.regex_replace(text, r"\\", r"\\\\")
    text = tf.strings.regex_replace(text, r"\n", r"\\n")
    return tf.strings.regex_replace(text, r"\r", r"\\r")


def _ids(places: Any) -> tf.Tensor:
    """Returns ids ``[batch, 1]`` from 1, and 0 where a record has no value."""
    shifted = tf.sparse.map_values(
        lambda place: tf.cast(place, tf.int64) + MISSING_ID + 1, places
    )
    return _dense(shifted, tf.constant(MISSING_ID, tf.int64))


def _as_float(value: tf.Tensor) -> tf.Tensor:
    return tf.cast(value, tf.float32)


def _as_number(spec: Any, value: tf.Tensor) -> tf.Tensor:
    """Returns float64 with the bounds and the logarithm of a spec applied.

    In float32 the variance of numbers beyond 1e19 is infinite.
    """
    number = tf.cast(value, tf.float64)
    if spec.clip:
        low, high = spec.clip
        number = tf.maximum(number, -math.inf if low is None else low)
        number = tf.minimum(number, math.inf if high is None else high)
    return tf.sign(number) * tf.math.log1p(tf.abs(number)) if spec.log else number


def _as_text(value: tf.Tensor) -> tf.Tensor:
    return value if value.dtype == tf.string else tf.strings.as_string(value)


def _as_sparse(value: Any) -> tf.sparse.SparseTensor:
    """Returns all values of a dense or sparse ``[batch, values]``."""
    if isinstance(value, tf.sparse.SparseTensor):
        return value
    rows = tf.reshape(value, [tf.shape(value)[0], -1])
    # Not tf.sparse.from_dense, which leaves out zeros.
    indices = tf.where(tf.ones_like(rows, tf.bool))
    return tf.sparse.SparseTensor(
        indices, tf.reshape(rows, [-1]), tf.shape(rows, tf.int64)
    )


def _values(value: Any) -> tf.sparse.SparseTensor:
    """Returns the values of a raw feature, without those that are missing."""
    sparse = _as_sparse(value)
    return tf.sparse.retain(sparse, is_value(sparse.values))


def _dense(value: Any, missing: Any) -> tf.Tensor:
    """Returns ``[batch, 1]``, with ``missing`` where a record has no value."""
    if not isinstance(value, tf.sparse.SparseTensor):
        return value
    column = tf.sparse.SparseTensor(
        value.indices, value.values, [value.dense_shape[0], 1]
    )
    return tf.sparse.to_dense(column, default_value=missing)
