"""Films of any number of genres, which a linear rule tells, from records to answers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics

from pipeline.config.load import load_config
from sample_data.tf_example import encode
from sluice.tfrecords import tfrecord
from sluice.workspace import locate

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

GENRES = ["drama", "comedy", "crime", "war"]
CONFIG = """
version: 1
name: films
data:
  dir: data
  splits: {train: "train*", eval: "eval*", test: "test*"}
label: {feature: genres, task: multi_label}
features: {x: {kind: vector}}
model: dense
train: {epochs: 8, learning_rate: 0.01}
evaluate:
  metrics:
    - AUC
    - BinaryAccuracy
    - ExampleCount
    - {class: Recall, name: recall_of_war, params: {class_id: 3}}
    - {class: AUC, name: macro_auc, average: macro}
    - {class: Precision, name: macro_precision, average: macro}
    - {class: Recall, name: macro_recall, average: macro}
  slices: [[country]]
  thresholds:
    - {metric: macro_auc, lower_bound: 0.99}
    - {metric: recall_of_war, lower_bound: 0.6}
    - {metric: auc, slice: [country], lower_bound: 0.9, min_examples_per_class: 20}
"""
ONE = "presence { min_fraction: 1 } shape { dim { size: 1 } }"
SCHEMA = f"""
default_environment: "TRAINING" default_environment: "SERVING"
feature {{ name: "genres" type: BYTES domain: "genres" not_in_environment: "SERVING" }}
string_domain {{ name: "genres" {" ".join(f'value: "{x}"' for x in GENRES)} }}
feature {{ name: "x" type: FLOAT
  presence {{ min_fraction: 1 }} shape {{ dim {{ size: 4 }} }} }}
feature {{ name: "country" type: BYTES {ONE} }}
"""


def film(chance: random.Random) -> dict[str, list[Any]]:
    """Returns a record; one in four has no genre."""
    a, b, c, d = x = [chance.gauss(0, 1) for _ in range(4)]
    has = (a > 0, b > 0.5, a + c > 1, d > 1.5)
    genres = [name.encode() for name, one in zip(GENRES, has, strict=True) if one]
    # Of the second country there are too few films to judge.
    country = b"FR" if chance.random() < 0.02 else b"US"
    return {"x": x, "country": [country], "genres": genres}


def write(path: Path, count: int, *more: dict[str, Any], seed: int = 0) -> None:
    chance = random.Random(seed)
    records = [film(chance) for _ in range(count)] + [*more]
    rows = [{name: x for name, x in record.items() if x} for record in records]
    tfrecord.write(path, map(encode, rows))


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """A project with records of three splits."""
    root = tmp_path_factory.mktemp("films")
    for name in ("configs", "schemas/films", "data"):
        (root / name).mkdir(parents=True)
    (root / "configs" / "films.yaml").write_text(CONFIG)
    (root / "schemas" / "films" / "schema.pbtxt").write_text(SCHEMA)
    for seed, (split, count) in enumerate(
        {"train": 4000, "eval": 600, "test": 600}.items()
    ):
        write(root / "data" / f"{split}-0", count, seed=seed)
    return root


@pytest.fixture(scope="module")
def record(films, run_config):
    """The record of a run to a pushed model."""
    found = run_config(load_config("films", cwd=films), locate(films, "films"))
    assert found.status == "succeeded", (found.error, found.gates[-1:])
    return found


@pytest.fixture(scope="module")
def answers(films, record):
    """Labels and probabilities ``[films, genres]``, and the genres of each answer."""
    from serving.predictor import Predictor

    predictor = Predictor(locate(films, "films").serving / "1")
    found: list[Any] = [*predictor.predict_files([films / "data" / "test-0"])]
    chance = random.Random(2)
    true = [film(chance)["genres"] for _ in found]
    labels = np.array([[name.encode() in row for name in GENRES] for row in true])
    probabilities = np.array([[*x.probabilities.values()] for x in found])
    return labels, probabilities, [x.labels for x in found]


def test_metrics_are_those_of_the_answers(record, answers):
    from components.model_verdict.read_evaluation import read_candidate

    labels, probabilities, _ = answers
    (uri,) = record.node("Evaluator").outputs["evaluation"]
    evaluation = read_candidate(uri, GENRES)
    found, predicted = evaluation.metrics[()], probabilities >= 0.5
    assert (labels.sum(axis=1) == 0).sum() > 100
    assert found["macro_auc"] > 0.99
    expected = {
        "example_count": len(labels),
        "auc": metrics.roc_auc_score(labels.ravel(), probabilities.ravel()),
        "binary_accuracy": (predicted == labels).mean(),
        "recall_of_war": metrics.recall_score(labels[:, 3], predicted[:, 3]),
        "macro_auc": metrics.roc_auc_score(labels, probabilities, average="macro"),
        "macro_precision": metrics.precision_score(labels, predicted, average="macro"),
        "macro_recall": metrics.recall_score(labels, predicted, average="macro"),
    }
    assert found == pytest.approx(expected, abs=1e-3)
    counts = evaluation.examples_per_class[()]
    assert counts == dict(zip(GENRES, labels.sum(axis=0).tolist(), strict=True))


def test_the_answer_is_each_genre_that_is_likely(answers):
    _, probabilities, named = answers
    assert named == [
        [name for name, x in zip(GENRES, row, strict=True) if x >= 0.5]
        for row in probabilities
    ]
    assert [] in named


def test_the_gate_judges_averages_single_classes_and_large_slices(record):
    rows = {(row["check"], row["slice"]): row for row in record.gates[-1]["rows"]}
    assert all(row["passed"] for row in rows.values())
    assert rows["recall_of_war", "overall"]["actual"] < 1
    assert rows["auc", "country: US"]["why"] == ""
    assert "of class war; 20 of each needed" in rows["auc", "country: FR"]["why"]


def test_an_unseen_genre_is_named_by_the_data_gate(films, run_config, tmp_path):
    western = {"x": [0.0] * 4, "country": [b"US"], "genres": [b"drama", b"western"]}
    for split, bad in {"train": [], "eval": [western], "test": []}.items():
        write(tmp_path / f"{split}-0", 20, *bad)
    config = load_config("films", cwd=films, overrides=[f"data.dir={tmp_path}"])
    found = run_config(config, locate(films, "films"), to_nodes=("DataGate",))
    assert (found.status, found.exit_code) == ("blocked", 3)
    failed = [row for row in found.gates[-1]["rows"] if not row["passed"]]
    (row,) = [row for row in failed if row["kind"] == "new_value"]
    assert row["feature"] == "genres"
    assert "record 21: genres 'western'" in str(row["examples"])


def test_one_hot_labels_that_are_not(films, run_config, tmp_path):
    """Two ones, or none, are no class: training says how many there are."""
    text = CONFIG.replace("genres, task: multi_label", "kind").replace("films", "kinds")
    head, _, _ = text.partition("evaluate:")
    text = f"{head}evaluate: {{metrics: [SparseCategoricalAccuracy]}}"
    (films / "configs" / "kinds.yaml").write_text(text)
    (films / "schemas" / "kinds").mkdir()
    of_label = "presence { min_fraction: 1 } shape { dim { size: 3 } } int_domain"
    (films / "schemas" / "kinds" / "schema.pbtxt").write_text(
        SCHEMA + f'feature {{ name: "kind" type: INT {of_label} {{ min: 0 max: 1 }} }}'
    )
    for number, split in enumerate(("train", "eval", "test")):
        more = [
            {"x": [1.0 * number] * 4, "country": [b"US"], "kind": kind}
            for kind in ([1, 0, 0], [0, 0, 1], [1, 1, 0], [0, 0, 0])
        ]
        write(tmp_path / f"{split}-0", 0, *more)
    config = load_config("kinds", cwd=films, overrides=[f"data.dir={tmp_path}"])
    found = run_config(config, locate(films, "kinds"))
    assert (found.status, found.exit_code) == ("failed", 7), [
        (x["check"], x["slice"], x["feature"], x["kind"], x["why"])
        for x in found.gates[-1]["rows"]
        if not x["passed"]
    ]
    assert found.error.node == "Trainer"
    assert "2 of 4 examples have no class: the label 'kind'" in found.error.message
