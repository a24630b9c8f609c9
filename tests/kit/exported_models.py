"""What an evaluation reads: an ``Examples`` artifact and exported models."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sluice.mlmd_items import Artifact
from sluice.tfrecords import tfrecord
from sluice.tfrecords.tf_example_pb2 import Example


def example(**values: Any) -> bytes:
    """Returns a serialized tf.Example."""
    message: Any = Example()
    for name, value in values.items():
        feature = message.features.feature[name]
        items = value if isinstance(value, list) else [value]
        if isinstance(items[0], bytes):
            feature.bytes_list.value.extend(items)
        elif isinstance(items[0], float):
            feature.float_list.value.extend(items)
        else:
            feature.int64_list.value.extend(items)
    return message.SerializeToString()


def write_examples(folder: Path, **splits: Sequence[bytes]) -> Artifact:
    """Writes the records of each split."""
    for split, records in splits.items():
        (folder / f"Split-{split}").mkdir(parents=True)
        tfrecord.write(folder / f"Split-{split}" / "data-00000-of-00001.gz", records)
    return Artifact(1, "Examples", str(folder), {"split_names": json.dumps([*splits])})


def export_model(
    folder: Path,
    weights: Sequence[float],
    classes: Sequence[str] = ("0", "1", "2"),
    task: str | None = None,
) -> Path:
    """Exports a model as ours are: it predicts the feature ``scores`` with weights.

    The label is the feature ``label``: a class id, a number per class, or targets.
    """
    import tensorflow as tf

    key = "prediction" if task == "regression" else "probabilities"
    kind, missing = (tf.float32, math.nan) if task else (tf.int64, -1)
    size = len(weights) if task else 1
    served_as = [tf.TensorSpec([None], tf.string, "examples")]

    class Model(tf.Module):
        @tf.function(input_signature=served_as)
        def serve(self, examples):
            spec = {"scores": tf.io.FixedLenFeature([len(weights)], tf.float32)}
            found = tf.io.parse_example(examples, spec)["scores"] * self.weights
            return {key: found, "label": examples[:, None]}

        @tf.function(input_signature=served_as)
        def transform(self, examples):
            spec = {"label": tf.io.FixedLenFeature([size], kind, [missing] * size)}
            return {"label_xf": tf.io.parse_example(examples, spec)["label"]}

        def __init__(self):
            super().__init__()
            self.weights = tf.Variable([weights], name="weights")

    served, saved = folder / "Format-Serving", Model()
    signatures = {"serving_default": saved.serve, "transform_features": saved.transform}
    tf.saved_model.save(saved, str(served), signatures)
    (served / "assets.extra").mkdir()
    names = json.dumps({**({"task": task} if task else {}), "classes": classes})
    (served / "assets.extra" / "classes.json").write_text(names)
    return folder
