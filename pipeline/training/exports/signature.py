"""``signature.json``: what an app gives to an export, and what it gets.

The preprocessing is described where it is only scaling: z-scores, and pixels divided
by 255. Mean and deviation are those that the SavedModel's own preprocessing shows on
examples, and are checked on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.config.features import (
    FeatureSet,
    Image,
    Numeric,
    RawPixels,
    Vector,
    transformed_name,
)
from pipeline.training.exports.inner_model import InnerModel

SIGNATURE_FILE = "signature.json"
_TOLERANCE = 1e-3


def describe(
    inner: InnerModel,
    feature_set: FeatureSet,
    raw_spec: Mapping[str, Any],
    records: list[bytes],
    transformed: Mapping[str, np.ndarray],
    *,
    own_preprocessing: bool,
) -> dict[str, Any]:
    """Returns the document.

    Args:
      inner: the model.
      feature_set: the features and the label.
      raw_spec: parsing spec of examples before preprocessing.
      records: serialized examples.
      transformed: the same as the model's inputs, by name.
      own_preprocessing: whether it is a function of the user's own.
    """
    features = {transformed_name(name): name for name in feature_set.features}
    known = {} if own_preprocessing else feature_set.transformed
    inputs, others = [], []
    for key, name in inner.names.items():
        feature, spec, values = features.get(key), known.get(key), transformed[name]
        steps: dict[str, Any] | None = None
        if isinstance(spec, Image | RawPixels):
            steps = _pixels(spec, raw_spec[features[key]].dtype)
        elif isinstance(spec, Numeric | Vector) and not (spec.clip or spec.log):
            raw = _numbers(records, features[key], raw_spec)
            # With an indicator of missing values, there are two columns.
            steps = _z_score(raw, values) if raw.shape == values.shape else None
        if steps is None:
            others.append(name)
        shape, dtype = inner.specs[name].shape.as_list(), inner.specs[name].dtype.name
        about = {"name": name, "feature": feature, "shape": shape, "dtype": dtype}
        inputs.append({**about, "preprocessing": steps})
    return {
        "inputs": inputs,
        "output": inner.output,
        "task": feature_set.label.task,
        "classes": feature_set.label.class_names,
        "only_scaling": not others,
        "note": _note(others),
    }


def _numbers(records: list[bytes], name: str, raw_spec: Mapping[str, Any]) -> Any:
    """Returns a feature's numbers, float64, NaN where there is none."""
    parsed = tf.io.parse_example(records, {name: raw_spec[name]})[name]
    if isinstance(parsed, tf.sparse.SparseTensor):
        values = tf.cast(parsed, tf.float64)
        parsed = tf.sparse.to_dense(values, default_value=np.nan)
    return parsed.numpy().astype(np.float64)


def _note(others: list[str]) -> str:
    if not others:
        return "Scale the inputs as their preprocessing says."
    return (
        f"The preprocessing is not only scaling: {', '.join(others)}. Inputs are what "
        "the SavedModel's signature transform_features returns for an example; it is "
        "not part of this export."
    )


def _pixels(spec: Image | RawPixels, dtype: Any) -> dict[str, Any]:
    """Returns how an image is decoded; ``dtype`` is that of the raw feature."""
    size = {"height": spec.height, "width": spec.width, "channels": spec.channels}
    if isinstance(spec, Image):
        return {"kind": "image", **size, "resize": "bilinear", "divide_by": 255}
    is_float = "float32" in (dtype.name, spec.dtype if dtype == tf.string else None)
    return {"kind": "pixels", **size, "divide_by": 1 if is_float else 255}


def _z_score(raw: np.ndarray, scaled: np.ndarray) -> dict[str, Any] | None:
    """Returns mean and deviation by which numbers are scaled; None if they are not."""
    raw, scaled = (x.reshape([len(x), -1]) for x in (raw, scaled))
    if np.isnan(raw).all(axis=0).any():
        return None
    low, high = np.nanargmin(raw, axis=0), np.nanargmax(raw, axis=0)
    column = np.arange(raw.shape[1])
    spread, moved = (x[high, column] - x[low, column] for x in (raw, scaled))
    if not (spread.all() and moved.all()):
        return None
    deviation = spread / moved
    mean = raw[low, column] - scaled[low, column] * deviation
    expected = np.nan_to_num((raw - mean) / deviation)
    if not np.allclose(expected, scaled, atol=_TOLERANCE):
        return None
    found = {"mean": mean.tolist(), "deviation": deviation.tolist()}
    return {"kind": "z_score", **found, "missing": 0.0}
