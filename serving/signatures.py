"""Signatures of our models, and values of tf.Examples as their inputs take them.

See ``pipeline.training.export``. TensorFlow is not imported.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from sluice.tfrecords.parse_tf_example import parse

# Takes serialized tf.Examples; takes one value per raw feature.
EXAMPLES, VALUES = "serving_default", "predict_values"
# Of a version's files; TensorFlow Serving asks the model these before it serves it.
WARM_UP_FILE = "assets.extra/tf_serving_warmup_requests"
# Value of a missing feature in the signature, by dtype.
MISSING: dict[str, Any] = {"float32": math.nan, "int64": -(2**63), "string": b""}


def input_specs(definition: Any) -> dict[str, Any]:
    """Returns the ``tf.TensorSpec`` of each input of a ``SignatureDef``."""
    import tensorflow as tf

    inputs: Mapping[str, Any] = definition.inputs
    return {
        name: tf.TensorSpec(info.tensor_shape, tf.as_dtype(info.dtype), name)
        for name, info in sorted(inputs.items())
    }


def column_of(rows: Sequence[Sequence[Any]], spec: Any) -> list[Any]:
    """Returns the values of a feature in the shape of its input.

    Args:
      rows: the values of each example; none where it is missing.
      spec: the ``tf.TensorSpec`` of the input.
    """
    missing = MISSING.get(spec.dtype.name)
    sizes = spec.shape.as_list()[1:] if spec.shape.rank else []
    if not sizes:
        return [row[0] if row else missing for row in rows]
    if sizes == [None]:
        width = max(1, *map(len, rows))
        return [[*row, *[missing] * (width - len(row))] for row in rows]
    default = [missing] * math.prod(sizes)
    # Arrays of numpy's own strings would lose trailing zeros of bytes.
    return [np.array(row or default, object).reshape(sizes).tolist() for row in rows]


def as_json(value: Any) -> Any:
    """Returns a value or nested lists as TensorFlow Serving's REST takes them."""
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    return value


def without(record: bytes, features: Collection[str]) -> bytes:
    """Returns a serialized tf.Example without some of its features."""
    if not features:
        return record
    example = parse(record)
    for name in features:
        example.features.feature.pop(name, None)
    return example.SerializeToString(deterministic=True)
