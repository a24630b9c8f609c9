"""What a client may ask of an exported model, made of records.

A client does not know the label, and sends serialized examples, or one value per raw
feature; see ``pipeline.training.export``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from components.serving_check.settings import Settings
from serving.signatures import (
    EXAMPLES,
    WARM_UP_FILE,
    column_of,
    input_specs,
    without,
)
from sluice.errors import NodeError
from sluice.model_facts import read_facts
from sluice.tfrecords.parse_tf_example import parse, values_of

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
    count = max(settings.examples, settings.batch)
    dataset = tf.data.TFRecordDataset(files, "GZIP").take(count)
    records = [without(x, settings.hidden) for x in dataset.as_numpy_iterator()]
    if not records:
        what = f"there is no example of {settings.split!r} to ask"
        raise NodeError(what, where=examples)
    return records


def columns_of(name: str, exported: Exported, records: Sequence[bytes]) -> Columns:
    """Returns the inputs of a signature for serialized tf.Examples."""
    specs = input_specs(exported.signatures[name])
    if name == EXAMPLES:
        return {key: records for key in specs}
    features = [parse(record).features.feature for record in records]
    return {
        item["input"]: column_of(
            [[*values_of(x.get(key))] for x in features], specs[item["input"]]
        )
        for key, item in exported.facts["features"].items()
    }


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
