"""The exported model's signatures, on models that are hard to export."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.label import Label
from sample_data.tf_example import encode
from serving.predictor import Predictor
from sluice.errors import DataError
from sluice.model_facts import read_facts
from sluice.tfrecords import tfrecord
from tests.kit import transform_output
from tests.kit.trainings import feature_set

pytestmark = pytest.mark.tf

FEATURES = feature_set(
    {"a": "numeric", "self": "numeric", "b/1 c": "numeric"}, ("low", "high")
)


ONE, SOME = "shape { dim { size: 1 } }", "value_count { min: 1 max: 1 }"


class Output:
    """The parts of TFTransformOutput that the export uses.

    Args:
      columns: parsing spec and schema of each raw feature, without the label.
      transform: makes ``a_xf`` from raw features.
    """

    def __init__(self, columns: dict[str, Any], transform: Callable[..., Any]) -> None:
        import tensorflow as tf

        label = tf.io.FixedLenFeature([1], tf.string), ONE
        self._columns = {**columns, "y": label}
        self._transform = transform

    def raw_feature_spec(self) -> dict[str, Any]:
        return {name: spec for name, (spec, _) in self._columns.items()}

    @property
    def raw_metadata(self) -> Any:
        texts = {name: text for name, (_, text) in self._columns.items()}
        return SimpleNamespace(schema=schema(**texts))

    def transform_features_layer(self) -> Callable[..., Any]:
        return lambda raw: {"a_xf": self._transform(raw)}


def numbers() -> Output:
    """One number passes as it is."""
    import tensorflow as tf

    columns = {
        "a": (tf.io.VarLenFeature(tf.float32), SOME),
        "self": (tf.io.FixedLenFeature([1], tf.float32), ONE),
        "b/1 c": (tf.io.VarLenFeature(tf.int64), SOME),
        "unused": (tf.io.FixedLenFeature([1], tf.string), ONE),
    }
    return Output(columns, lambda raw: tf.sparse.to_dense(raw["a"]))


def vectors() -> Output:
    """Vectors, which a user's own preprocessing adds up."""
    import tensorflow as tf

    def total(raw: Any) -> Any:
        lengths = tf.strings.length(tf.sparse.to_dense(raw["tags"], ""))
        parts = [raw["place"], tf.cast(lengths, tf.float32)]
        lists = tf.add_n([tf.reduce_sum(part, axis=1) for part in parts])
        grid = tf.reduce_sum(tf.cast(raw["grid"], tf.float32), axis=[1, 2])
        return (lists + grid)[:, tf.newaxis] / 100.0

    grid = "shape { dim { size: 2 } dim { size: 3 } }"
    columns = {
        "place": (tf.io.FixedLenFeature([2], tf.float32), "shape { dim { size: 2 } }"),
        "grid": (tf.io.FixedLenFeature([2, 3], tf.int64), grid),
        "tags": (
            tf.io.VarLenFeature(tf.string),
            "value_count { min: 0 } presence { min_fraction: 1.0 }",
        ),
    }
    return Output(columns, total)


NAMES = (
    *("A", "a", "b/1", "b 1", "B_1", "年龄", "收入", "self", "label", "probabilities"),
    *("examples", "serialized_examples", "2nd", "_x", "x" * 100, "ß", "ss", "args", ""),
)


def named() -> Output:
    """One number for each of the names, and a sum that tells them apart."""
    import tensorflow as tf

    def total(raw: Any) -> Any:
        given = [tf.sparse.to_dense(raw[name]) for name in NAMES]
        return tf.add_n([x * i / 100 for i, x in enumerate(given)])

    column = tf.io.VarLenFeature(tf.float32), SOME
    return Output(dict.fromkeys(NAMES, column), total)


def schema(**features: str) -> schema_pb2.Schema:
    text = "".join(
        f'feature {{ name: "{name}" {rest} }}' for name, rest in features.items()
    )
    return text_format.Parse(text, schema_pb2.Schema())


def _export(build, directory: Path, output: Output | None = None):
    import tensorflow as tf

    from pipeline.training.export import export_model

    inputs = tf.keras.Input((1,), name="a_xf")
    model = tf.keras.Model({"a_xf": inputs}, build(inputs))
    export_model(
        model,
        str(directory),
        FEATURES,
        output or numbers(),
        all_raw_features=output is not None,
    )
    return tf.saved_model.load(str(directory))


def _others(count: int) -> dict[str, Any]:
    import tensorflow as tf

    return {"feature_self": tf.zeros([count]), "b_1_c": tf.zeros([count], tf.int64)}


def test_a_lookup_table_inside_the_model_is_exported(tmp_path):
    import tensorflow as tf

    def build(x):
        ids = tf.keras.layers.IntegerLookup(vocabulary=[7, 8])(tf.cast(x, tf.int64))
        return tf.cast(ids, tf.float32) / 2.0

    predict = _export(build, tmp_path).signatures["predict_values"]
    answer = predict(a=tf.constant([7.0, 8.0, 9.0]), **_others(3))
    assert answer["probabilities"].numpy().tolist() == [[0.5], [1.0], [0.0]]


def sigmoid_of_a(inputs: Any, _: Any = None) -> Any:
    import tensorflow as tf

    a, ones = inputs.keras_inputs()["a_xf"], {"kernel_initializer": "ones"}
    last = tf.keras.layers.Dense(1, "sigmoid", use_bias=False, **ones)
    return tf.keras.Model({"a_xf": a}, last(a))


def _decided(threshold: Any, folder: Path, data: Any, **rest: str) -> Any:
    """Exports a model with a threshold, and returns what it predicts of ``data``."""
    from pipeline.training.build import model_inputs
    from pipeline.training.export import export_model, write_model_run

    label = {"feature": "y", "classes": [0, 1], "threshold": threshold}
    features = feature_set({"a": "numeric"}, **rest).model_copy(
        update={"label": Label.model_validate(label)}
    )
    types = {"a": "float32", "y": "int64", **dict.fromkeys(rest.values(), "float32")}
    output = transform_output.Output(types)
    files = [folder / "Split-eval" / f"{part}.gz" for part in (0, 1)]
    for part, file in enumerate(files):
        file.parent.mkdir(exist_ok=True)
        rows = (
            {name: [x[i]] for name, x in data.items()} for i in range(len(data["a"]))
        )
        tfrecord.write(file, [encode(row) for row in [*rows][part::2]])
    model = sigmoid_of_a(model_inputs(features, output))
    write_model_run(model, {}, str(folder / "run"))
    target, patterns = str(folder / "model"), [f"{folder}/Split-eval/*"]
    export_model(model, target, features, output, eval_files=patterns)
    return features, output, [*Predictor(target).predict_files(files)]


def test_the_threshold_is_chosen_on_eval_as_the_model_serves(tmp_path):
    random = np.random.default_rng(3)
    # Many examples have the same probability.
    a, w = random.normal(size=600).round(1), random.choice([0.5, 4.0], size=600)
    y = random.random(600) < 0.3 / (1 + np.exp(-2 * a))
    data = {"a": a.tolist(), "y": y.astype(int).tolist(), "w": w.tolist()}
    rule = {"recall_at_least": 0.9}
    _, _, answers = _decided(rule, tmp_path, data, sample_weight="w")
    threshold = np.float32(read_facts(tmp_path / "model")["threshold"])
    p = np.array([x.probabilities["1"] for x in answers], np.float32)
    y, w = (np.concatenate([x[::2], x[1::2]]) for x in (y, w))
    assert [x.label for x in answers] == [str(int(x)) for x in p >= threshold]

    def recall(named: Any) -> float:
        return float(w[y & named].sum() / w[y].sum())

    assert recall(p >= threshold) >= 0.9 > recall(p > p[p >= threshold].min())


def test_an_export_decides_as_the_served_model_does(tmp_path, monkeypatch):
    from components.exports.settings import Export
    from pipeline.training.exports import export_fn
    from pipeline.training.exports.tflite import load_tflite

    a = np.linspace(-3.0, 3.0, 60, dtype=np.float32)
    data = {"a": a.tolist(), "y": [0, 1] * 30}
    features, output, answers = _decided(0.3, tmp_path, data)
    monkeypatch.setattr(export_fn.tft, "TFTransformOutput", lambda _: output)
    model = {"model": f"{__name__}:sigmoid_of_a", "model_params": {}}
    comparisons = export_fn.export_fn(
        [Export(format="tflite")],
        {"feature_set": features.model_dump(), "own_preprocessing": False, **model},
        saved_model=tmp_path / "model",
        model_run=tmp_path / "run",
        transform_graph=tmp_path,
        examples=str(tmp_path),
        target=tmp_path / "exports",
    )
    folder = tmp_path / "exports" / "tflite"
    about = json.loads((folder / "signature.json").read_text())
    predict = load_tflite(folder / "model.tflite")
    found = [predict({"a_xf": x.reshape(1, 1)})[0, 0] for x in (*a[::2], *a[1::2])]
    named = [about["classes"][int(x >= about["threshold"])] for x in found]
    assert named == [x.label for x in answers]
    assert named.count("1") == (1 / (1 + np.exp(-a)) >= 0.3).sum() > 30
    assert comparisons[1].agreement == 1.0


def test_features_are_told_apart_whatever_their_names(tmp_path):
    loaded = _export(lambda x: x, tmp_path / "model", named())
    predictor = Predictor(tmp_path / "model")
    assert [*predictor.features] == [*NAMES]
    paths = [tmp_path / name for name in ("rows", "records")]
    paths[0].write_text("\n".join(json.dumps({name: 1}) for name in NAMES))
    tfrecord.write(paths[1], [encode({name: [1.0]}) for name in NAMES])

    for path in paths:
        answers = [row.probabilities for row in predictor.predict_files([path])]
        high = [answer["high"] for answer in answers if isinstance(answer, dict)]
        assert high == pytest.approx([i / 100 for i in range(len(NAMES))])
    # TFMA would give the feature to an input of its name.
    for name in ("serving_default", "transform_features"):
        _, inputs = loaded.signatures[name].structured_input_signature
        assert not inputs.keys() & {*NAMES}


def test_vectors_are_predicted_from_json_lines_as_from_records(tmp_path):
    _export(lambda x: x, tmp_path / "model", vectors())
    rows: list[dict[str, Any]] = [
        {"place": [1.0, 2.5], "grid": [[1, 2, 3], [4, 5, 6]], "tags": ["abc", "d"]},
        {"place": [0.5, 9.0], "grid": [[0, 0, 0], [7, 0, 0]], "tags": []},
        {"place": [0.0, 0.5], "grid": [[0, 0, 0], [0, 0, 0]], "tags": ["x"]},
    ]
    lines, records = tmp_path / "rows.jsonl", tmp_path / "rows.tfrecord"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    tfrecord.write(
        records,
        [
            encode(
                {
                    "place": row["place"],
                    "grid": [value for line in row["grid"] for value in line],
                    **(
                        {"tags": [t.encode() for t in row["tags"]]}
                        if row["tags"]
                        else {}
                    ),
                }
            )
            for row in rows
        ],
    )

    predictor = Predictor(tmp_path / "model")

    shapes = {name: spec.shape.as_list() for name, spec in predictor.features.items()}
    assert shapes == {"grid": [None, 2, 3], "place": [None, 2], "tags": [None, None]}
    for path in (lines, records):
        answers = [*predictor.predict_files([path])]
        found = [answer.probabilities for answer in answers]
        high = [value["high"] for value in found if isinstance(value, dict)]
        assert high == pytest.approx([0.285, 0.165, 0.015])
        # Only of tags the schema says that they are in every record.
        assert [answer.missing for answer in answers] == [None, ["tags"], None]
    # One row alone has tags of another width, or none.
    lines.write_text(json.dumps(rows[1]) + "\n" + json.dumps({**rows[0], "place": 1}))
    one_by_one = predictor.predict_files([lines])
    assert next(one_by_one).label == "low"
    with pytest.raises(DataError, match="cannot process this row: 'place', float32"):
        next(one_by_one)
