"""``signature.json``: what an app gives to an export, and what it gets.

The preprocessing is described where it is only scaling: z-scores, and pixels divided
by 255. Mean and deviation are those that the SavedModel's own preprocessing shows on
examples, and are checked on them. Of other inputs it says how to get them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.config.features import FeatureSet, Image, Numeric, RawPixels, Vector
from pipeline.config.label import transformed_name
from pipeline.training.preprocessing import MISSING, is_value

SIGNATURE_FILE = "signature.json"
_TOLERANCE = 1e-3
_OTHER = (
    "not only scaling: take what the SavedModel's signature transform_features returns "
    "for an example"
)


def describe(
    feature_set: FeatureSet,
    used: Mapping[str, str],
    raw_spec: Mapping[str, Any],
    records: list[bytes],
    transformed: Mapping[str, np.ndarray],
    *,
    own_preprocessing: bool,
) -> dict[str, Any]:
    """Returns the document.

    Args:
      feature_set: the features and the label.
      used: the model's inputs, the name in exports by transformed name.
      raw_spec: parsing spec of examples before preprocessing.
      records: serialized examples.
      transformed: the same as the model's inputs, by name in exports.
      own_preprocessing: whether it is a function of the user's own.
    """
    features = {transformed_name(name): name for name in feature_set.features}
    known = {} if own_preprocessing else feature_set.transformed
    inputs = []
    for key, name in used.items():
        spec, steps, values = known.get(key), None, transformed[name]
        if isinstance(spec, Image | RawPixels):
            steps = _pixels(spec, raw_spec[features[key]].dtype)
        elif isinstance(spec, Numeric | Vector) and not (spec.clip or spec.log):
            raw = _numbers(records, features[key], raw_spec)
            steps = _z_score(raw, values)
        inputs.append(
            {
                "name": name,
                "feature": features.get(key),
                "shape": [None, *values.shape[1:]],
                "dtype": values.dtype.name,
                "preprocessing": steps or _OTHER,
            }
        )
    return {
        "inputs": inputs,
        "output": feature_set.label.prediction_key,
        "task": feature_set.label.task,
        "classes": feature_set.label.class_names,
    }


def _numbers(records: list[bytes], name: str, raw_spec: Mapping[str, Any]) -> Any:
    """Returns a feature's numbers, float64, NaN where there is none."""
    parsed = tf.io.parse_example(records, {name: raw_spec[name]})[name]
    if isinstance(parsed, tf.sparse.SparseTensor):
        parsed = tf.sparse.to_dense(parsed, MISSING[parsed.dtype])
    return np.where(is_value(parsed), parsed, np.nan)


def _pixels(spec: Image | RawPixels, dtype: Any) -> dict[str, Any]:
    """Returns how an image is decoded; ``dtype`` is that of the raw feature."""
    size = {"height": spec.height, "width": spec.width, "channels": spec.channels}
    if isinstance(spec, Image):
        resize = {"resize": "bilinear", "shape": spec.resize}
        return {"kind": "image", **size, **resize, "divide_by": 255}
    is_float = "float32" in (dtype.name, spec.dtype if dtype == tf.string else None)
    return {"kind": "pixels", **size, "divide_by": 1 if is_float else 255}


def _z_score(raw: np.ndarray, scaled: np.ndarray) -> dict[str, Any] | None:
    """Returns mean and deviation by which numbers are scaled; None if they are not."""
    if raw.shape != scaled.shape:  # There is an indicator of missing values.
        return None
    known = np.where(np.isnan(raw), np.nan, scaled)
    with warnings.catch_warnings():  # A column is constant or all missing.
        warnings.simplefilter("ignore")
        low, high = (of(raw, axis=0) for of in (np.nanmin, np.nanmax))
        first, last = (of(known, axis=0) for of in (np.nanmin, np.nanmax))
        deviation = (high - low) / (last - first)
        mean = low - first * deviation
        expected = np.nan_to_num((raw - mean) / deviation)
    if not np.allclose(expected, scaled, atol=_TOLERANCE) or np.isnan(mean).any():
        return None
    numbers = {"mean": mean.ravel().tolist(), "deviation": deviation.ravel().tolist()}
    return {"kind": "z_score", **numbers, "missing": 0.0}
