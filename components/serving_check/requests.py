"""What a client may ask of an exported model, made of records.

A client does not know the label, and sends serialized examples, or one value per raw
feature; see ``pipeline.training.export``.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from components.serving_check.judge import EXAMPLES
from components.serving_check.settings import Settings
from serving.predictor import MISSING
from sluice.errors import NodeError
from sluice.model_facts import read_facts

# Of a version's files; TensorFlow Serving asks the model these before it serves it.
WARM_UP_FILE = "assets.extra/tf_serving_warmup_requests"
# A batch of larger requests would be copied into every version.
_MAX_WARM_UP_BYTES = 4 << 20
# The values of each input, one per example; text is bytes.
Columns = Mapping[str, Sequence[Any]]


class Exported(NamedTuple):
    """What a SavedModel says of itself.

    Attributes:
      signatures: the ``SignatureDef`` of each name.
      version: of the TensorFlow that has exported it.
      facts: see ``sluice.model_facts``.
    """

    signatures: Mapping[str, Any]
    version: str
    facts: Mapping[str, Any]


def read_exported(saved_model: Path) -> Exported:
    """Reads what a SavedModel says of itself.

    Raises:
      OSError, ValueError, DecodeError: a file is missing or damaged.
    """
    content = (saved_model / "saved_model.pb").read_bytes()
    graph = saved_model_pb2.SavedModel.FromString(content).meta_graphs[0]
    version = graph.meta_info_def.tensorflow_version
    return Exported(dict(graph.signature_def), version, read_facts(saved_model))


def read_records(examples: str, settings: Settings) -> list[bytes]:
    """Returns the first tf.Examples of the split, without what a client does not know.

    Raises:
      NodeError: there are none.
    """
    files = sorted(tf.io.gfile.glob(f"{examples}/Split-{settings.split}/*"))
    count, records = max(settings.examples, settings.batch), []
    dataset = tf.data.TFRecordDataset(files, "GZIP").take(count)
    for record in dataset.as_numpy_iterator():
        example = tf.train.Example.FromString(record)
        for name in {*settings.hidden} & {*example.features.feature}:
            del example.features.feature[name]
        records.append(example.SerializeToString(deterministic=True))
    if not records:
        what = f"there is no example of {settings.split!r} to ask"
        raise NodeError(what, where=examples)
    return records


def columns_of(name: str, exported: Exported, records: Sequence[bytes]) -> Columns:
    """Returns the inputs of a signature for serialized tf.Examples."""
    inputs = exported.signatures[name].inputs
    if name == EXAMPLES:
        return {key: records for key in inputs}
    features = [tf.train.Example.FromString(x).features.feature for x in records]
    return {
        item["input"]: _column(
            [_values(x, key) for x in features], inputs[item["input"]]
        )
        for key, item in exported.facts["features"].items()
    }


def _values(features: Any, name: str) -> list[Any]:
    kind = features[name].WhichOneof("kind") if name in features else None
    return list(getattr(features[name], kind).value) if kind else []


def _column(values: list[list[Any]], spec: Any) -> list[Any]:
    """Returns values in the shape of an input: what is missing has its own value."""
    missing = MISSING.get(tf.as_dtype(spec.dtype).name)
    sizes = [dimension.size for dimension in spec.tensor_shape.dim][1:]
    if not sizes:
        return [row[0] if row else missing for row in values]
    if sizes == [-1]:
        width = max(1, *map(len, values))
        return [[*row, *[missing] * (width - len(row))] for row in values]
    default = [missing] * math.prod(sizes)
    # Arrays of numpy's own strings would lose trailing zeros of bytes.
    return [np.array(x or default, object).reshape(sizes).tolist() for x in values]


def as_json(value: Any) -> Any:
    """Returns a value as TensorFlow Serving's REST interface takes it."""
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    return value


def write_warm_up(
    saved_model: Path, exported: Exported, asked: Iterable[tuple[str, Columns]]
) -> None:
    """Writes requests into a SavedModel's folder, for a server to ask at its start.

    https://www.tensorflow.org/tfx/serving/saved_model_warmup
    """
    from tensorflow_serving.apis import prediction_log_pb2

    with tf.io.TFRecordWriter(str(saved_model / WARM_UP_FILE)) as writer:
        for name, columns in asked:
            log = prediction_log_pb2.PredictionLog()
            request = log.predict_log.request
            request.model_spec.signature_name = name
            for key, column in columns.items():
                kind = exported.signatures[name].inputs[key].dtype
                request.inputs[key].CopyFrom(tf.make_tensor_proto(column, kind))
            is_single = len(next(iter(columns.values()))) == 1
            if is_single or log.ByteSize() <= _MAX_WARM_UP_BYTES:
                # Equal models are equal files, of which one is pushed.
                writer.write(log.SerializeToString(deterministic=True))
