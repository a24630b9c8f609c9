"""All kinds of features in one pipeline whose answer needs every one of them.

Their names are such that TensorFlow, Keras or TFMA takes one for another.
"""

from __future__ import annotations

import base64
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.load import load_config
from sample_data.tf_example import encode
from sluice.tfrecords import tfrecord
from sluice.workspace import locate
from tests.kit.project import write_project

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

CONFIG = """
version: 1
name: films
data:
  dir: data
  splits: {train: "train*", eval: "eval*"}
label: {feature: liked}
features:
  embedding: {kind: vector}
  genres: {kind: multi_hot}
  评论: {kind: text, length: 8}
  income: {kind: numeric, log: true, clip: [0, 1000000], missing_indicator: true}
  城市: {kind: vocabulary}
  季节: {kind: hashed}
  when_and_where: {kind: cross, of: [城市, 季节]}
  poster: {kind: pixels, height: 4, width: 3, channels: 1}
  Genres: {kind: text, form: sequence, split: false, length: 6}
  examples: {kind: passthrough, length: 2}
model: films_model:build_model
train: {epochs: 12, learning_rate: 0.003}
evaluate:
  metrics: [BinaryAccuracy, ExampleCount]
  slices: [[城市]]
  thresholds: [{metric: binary_accuracy, lower_bound: 0.93}]
"""
MODEL = '''
import tensorflow as tf

from pipeline.training.models import dense


def build_model(inputs, params):
    """As dense, with the ratings of any scale normalized."""
    keras_inputs = inputs.keras_inputs()
    normalized = tf.keras.layers.BatchNormalization()(keras_inputs["examples_xf"])
    tensors = {**keras_inputs, "examples_xf": normalized}
    deep = dense.hidden_layers(inputs, tensors, {"dropout": 0.0})
    return tf.keras.Model(keras_inputs, inputs.output_layer()(deep))
'''
ONE = "presence { min_fraction: 1 } shape { dim { size: 1 } }"
SCHEMA = f"""
default_environment: "TRAINING" default_environment: "SERVING"
feature {{ name: "liked" type: INT {ONE} not_in_environment: "SERVING"
  int_domain {{ min: 0 max: 1 is_categorical: true }} }}
feature {{ name: "embedding" type: FLOAT
  presence {{ min_fraction: 1 }} shape {{ dim {{ size: 3 }} }} }}
feature {{ name: "genres" type: BYTES domain: "genres" }}
string_domain {{ name: "genres" value: "drama" value: "comedy" value: "crime" }}
feature {{ name: "评论" type: BYTES value_count {{ min: 1 max: 1 }} }}
feature {{ name: "income" type: FLOAT value_count {{ min: 1 max: 1 }} }}
feature {{ name: "城市" type: BYTES {ONE} }}
feature {{ name: "季节" type: INT {ONE} }}
feature {{ name: "poster" type: BYTES {ONE} }}
feature {{ name: "Genres" type: INT }}
feature {{ name: "examples" type: FLOAT }}
"""
WORDS = "the film is long and loud with many stars".split()


def film(chance: random.Random, **changed: Any) -> dict[str, list[Any]]:
    """Returns a record that is liked if most of nine coins, one a feature, say so."""
    coins = [chance.random() < 0.5 for _ in range(9)]
    vector, genre, word, rich, missing, cross, bright, order, rated = coins
    town, season = chance.randrange(2), chance.randrange(2)
    season = town ^ cross
    words = [chance.choice(WORDS) for _ in range(5)] + ["GOOD!"] * word
    chance.shuffle(words)
    steps = [chance.randrange(3, 9) for _ in range(4)]
    found: dict[str, Any] = {
        "liked": [int(sum(coins) > 4)],
        "embedding": [chance.gauss(0, 9), 6.0 * vector - 3 + chance.random(), 7.0],
        "genres": [b"drama"] * genre + [b"comedy"] * chance.randrange(2),
        "评论": [" ".join(words).encode()],
        "income": [] if missing else [10.0 ** (4 * rich) * (1 + chance.random())],
        "城市": [b"%d" % town],
        "季节": [season],
        "poster": [bytes(chance.randrange(100) + 150 * bright for _ in range(12))],
        "Genres": [*steps[:2], *([1, 2] if order else [2, 1]), *steps[2:]],
        "examples": [1000.0 * rated, chance.random()],
    }
    if missing:
        found["liked"] = [int(sum(coins) - rich > 4)]
    return {**found, **changed}


def write(path: Path, count: int, seed: int) -> None:
    chance = random.Random(seed)
    rows = [film(chance) for _ in range(count)]
    records = [{name: value for name, value in row.items() if value} for row in rows]
    tfrecord.write(path, map(encode, records))


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    root = write_project(tmp_path_factory.mktemp("films"), "films", CONFIG, SCHEMA)
    (root / "films_model.py").write_text(MODEL)
    write(root / "data" / "train-0", 6000, 1)
    write(root / "data" / "eval-0", 1000, 2)
    return root


@pytest.fixture(scope="module")
def model(films, run_config):
    """The model of a run, whose answers need every feature."""
    from serving.predictor import Predictor
    from sluice.project import activate

    activate(films)
    config = load_config("films", cwd=films)
    record = run_config(config, locate(films, "films"))
    assert record.status == "succeeded", (record.error, record.gates[-1:])
    return Predictor(locate(films, "films").serving / "1")


def as_json(value: Any) -> Any:
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode()}


def test_rows_of_json_and_records_have_the_same_answers(model, tmp_path):
    chance = random.Random(3)
    missing = {
        **{"embedding": [math.nan, -math.inf, 7.0], "income": [math.inf]},
        **{"城市": [b""], "季节": [-(2**63)], "examples": [math.nan, 0.5]},
        **{"genres": [b"", b"drama"], "Genres": [1, -(2**63), 2]},
    }
    rows = [*(film(chance) for _ in range(40)), film(chance, **missing)]
    single = ("评论", "income", "城市", "季节", "poster")
    lines = []
    for row in rows:
        values = {name: [as_json(x) for x in row[name]] for name in row}
        poster = base64.b64encode(row["poster"][0]).decode()
        plain = {name: next(iter(values[name]), None) for name in single}
        plain["poster"] = {"b64": poster}
        del values["liked"]
        lines.append(json.dumps({**values, **plain}))
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    records = [{name: x for name, x in row.items() if x} for row in rows]
    tfrecord.write(tmp_path / "rows", map(encode, records))
    labels = [
        [answer.label for answer in model.predict_files([tmp_path / name])]
        for name in ("rows.jsonl", "rows")
    ]
    assert labels[0] == labels[1]
    right = sum(
        label == str(row["liked"][0])
        for label, row in zip(labels[0][:40], rows[:40], strict=True)
    )
    assert right >= 36
