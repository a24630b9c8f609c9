"""Small SavedModels with the signatures of our trainer, right or with one fault."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sample_data.tf_example import encode

COLORS = ("blue", "green", "red")
_MISSING_INT = -(2**63)


def records(count: int = 40) -> list[bytes]:
    """Returns serialized tf.Examples: a number, a text, a list, and the label ``y``."""
    random = np.random.default_rng(4)
    rows: list[dict[str, Any]] = [
        {
            "a": [float(random.normal())],
            "text": [[b"one"], [b"two"], [b"\xff\x00"], []][i % 4],
            "ids": random.integers(0, 9, i % 3).tolist(),
            "y": [COLORS[i % 3].encode()],
        }
        for i in range(count)
    ]
    return [encode({name: x for name, x in row.items() if x}) for row in rows]


def save(
    folder: Path,
    change: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]] | None = None,
    *,
    of_values: bool = True,
    asks: str | None = None,
    needs: str | None = None,
    number: str = "float32",
    names: Mapping[str, str] | None = None,
    about: Mapping[str, Any] | None = None,
) -> Path:
    """Saves a model of three classes.

    Args:
      folder: of the SavedModel.
      change: returns other outputs, of the outputs and the raw features.
      of_values: whether ``predict_values`` has the change, too.
      asks: one more input of ``predict_values``.
      needs: a feature that examples must have, too.
      number: the type of the input ``a`` of ``predict_values``.
      names: other names of signatures.
      about: other facts in ``assets.extra/classes.json``.
    """
    import tensorflow as tf

    folder.parent.mkdir(exist_ok=True)
    vocabulary = folder.parent / f"{folder.name}-words.txt"
    vocabulary.write_text("one\ntwo\n")

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            random = np.random.default_rng(1)
            self.weights = tf.Variable(random.normal(size=[3, 3]), dtype=tf.float32)
            source = tf.lookup.TextFileInitializer(
                tf.saved_model.Asset(str(vocabulary)),
                *(tf.string, tf.lookup.TextFileIndex.WHOLE_LINE),
                *(tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER),
            )
            self.words = tf.lookup.StaticHashTable(source, -1)
            self.names = tf.constant(COLORS)

        def predict(self, raw, is_changed):
            word = tf.cast(self.words.lookup(raw["text"]), tf.float32)
            total = tf.cast(tf.reduce_sum(raw["ids"], axis=1), tf.float32)
            columns = tf.stack([raw["a"], word, total / 9.0], axis=1)
            found = tf.nn.softmax(columns @ self.weights)
            label = tf.gather(self.names, tf.argmax(found, axis=1))[:, None]
            outputs = {"probabilities": found, "label": label}
            return change(outputs, raw) if change and is_changed else outputs

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
        def of_examples(self, examples):
            spec = {
                "a": tf.io.FixedLenFeature([], tf.float32),
                "text": tf.io.FixedLenFeature([], tf.string, ""),
                "ids": tf.io.VarLenFeature(tf.int64),
            }
            if needs:
                spec[needs] = tf.io.FixedLenFeature([], tf.string)
            raw = tf.io.parse_example(examples, spec)
            raw["ids"] = tf.sparse.to_dense(raw["ids"])
            return self.predict(raw, True)

        @tf.function
        def of_values(self, **raw):
            is_missing = raw["ids"] == _MISSING_INT
            raw["ids"] = tf.where(is_missing, tf.zeros_like(raw["ids"]), raw["ids"])
            if number == "string":
                raw["a"] = tf.strings.to_number(raw["a"])
            raw["a"] = tf.cast(raw["a"], tf.float32)
            return self.predict(raw, of_values)

    inputs = {
        "a": tf.TensorSpec([None], number),
        "text": tf.TensorSpec([None], tf.string),
        "ids": tf.TensorSpec([None, None], tf.int64),
    }
    if asks:
        inputs[asks] = tf.TensorSpec([None], tf.string)
    model = Model()
    signatures = {
        "serving_default": model.of_examples,
        "predict_values": model.of_values.get_concrete_function(**inputs),
    }
    signatures = {(names or {}).get(key, key): x for key, x in signatures.items()}
    tf.saved_model.save(model, str(folder), signatures)
    describe(folder, **(about or {}))
    return folder


def describe(folder: Path, **about: Any) -> None:
    """Writes what a model says of itself."""
    known = {
        name: {"input": name, "required": name == "a", "in_every_record": name == "a"}
        for name in ("a", "text", "ids")
    }
    facts = {"task": "classification", "classes": COLORS, "features": known, **about}
    file = folder / "assets.extra" / "classes.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(facts))


def replace_op(folder: Path, ops: Sequence[str]) -> None:
    """Renames an operation in a model's graph: as one that is in no TensorFlow."""
    from tensorflow.core.protobuf import saved_model_pb2

    file = folder / "saved_model.pb"
    saved = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    (graph,) = saved.meta_graphs
    functions = graph.graph_def.library.function
    nodes = [*graph.graph_def.node, *(x for f in functions for x in f.node_def)]
    for node in nodes:
        if node.op in ops:
            node.op = "NoSuchOp"
    file.write_bytes(saved.SerializeToString())
