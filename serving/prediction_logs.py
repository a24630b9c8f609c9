"""Writes answered requests as TensorFlow Serving's ``PredictionLog``.

Each has one serialized tf.Example, also of a request with plain values, and the model's
answer, as TFX's BulkInferrer writes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from serving.signatures import MISSING

_KINDS = {"f": "float_list", "i": "int64_list", "O": "bytes_list"}
Tensors = Mapping[str, np.ndarray]


def logs_of(
    spec: Any, examples: Sequence[bytes], outputs: Tensors, at_s: float
) -> Iterator[bytes]:
    """Yields a serialized ``PredictionLog`` for each row of a request.

    Args:
      spec: the ``ModelSpec`` of the signature that has answered.
      examples: the rows.
      outputs: of the signature; those with a value for each row are written.
      at_s: when, in seconds since 1970.
    """
    for row, example in enumerate(examples):
        log = prediction_log_pb2.PredictionLog()
        log.log_metadata.timestamp_secs = int(at_s)
        request = log.predict_log.request
        log.log_metadata.model_spec.CopyFrom(spec)
        request.model_spec.CopyFrom(spec)
        _fill(request.inputs["examples"], np.array([example], object))
        for key, values in outputs.items():
            if len(values) == len(examples):
                _fill(log.predict_log.response.outputs[key], values[row : row + 1])
        yield log.SerializeToString()


def _fill(tensor: Any, values: np.ndarray) -> None:
    """Sets a TensorProto, in a tenth of the time of ``tf.make_tensor_proto``."""
    tensor.dtype = tf.as_dtype(values.dtype).as_datatype_enum
    for size in values.shape:
        tensor.tensor_shape.dim.add(size=size)
    if tensor.dtype == tf.string:
        tensor.string_val.extend(values.ravel())
    else:
        tensor.tensor_content = values.tobytes()


def examples_of(
    inputs: Tensors, features: Mapping[str, Any], left_out: Collection[str]
) -> Iterator[bytes]:
    """Yields the plain values of each row as a serialized tf.Example.

    Args:
      inputs: of the signature that takes plain values.
      features: what the model says of its features.
      left_out: features to leave out.
    """
    columns = {
        name: (inputs[about["input"]], about["required"])
        for name, about in features.items()
        if name not in left_out
    }
    rows = max(len(column) for column in inputs.values())
    for row in range(rows):
        example = tf.train.Example()
        for name, (column, is_required) in columns.items():
            # Not column[row], of which NumPy makes bytes without their last zeros.
            values = column[row : row + 1].ravel()
            if not is_required:
                values = values[[not _is_missing(value) for value in values]]
            if len(values):
                feature = example.features.feature[name]
                getattr(feature, _KINDS[column.dtype.kind]).value.extend(values)
        yield example.SerializeToString()


def _is_missing(value: Any) -> bool:
    return bool(value != value) or value in (MISSING["int64"], MISSING["string"])
