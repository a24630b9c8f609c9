"""Films with labels of each kind, which linear rules tell, from records to answers."""

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
from tests.kit.project import write_project

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

GENRES = ["drama", "comedy", "crime", "war"]
# The share of kinds that are right.
KIND_IS_RIGHT = 0.8
CONFIG = """
version: 1
name: NAME
data:
  dir: data
  splits: {train: "train*", eval: "eval*", test: "test*"}
label: LABEL
features: {x: {kind: vector}}
model: dense
train: {epochs: 8, learning_rate: 0.01}
evaluate:
"""
LABELS = {
    "films": "{feature: genres, task: multi_label}",
    "kinds": "{feature: kind, classes: [long, short, mute]}",
}
MACRO = """
    - {class: AUC, name: macro_auc, average: macro}
    - {class: Precision, name: macro_precision, average: macro}
    - {class: Recall, name: macro_recall, average: macro}
"""
EVALUATE = {
    "films": f"""
  metrics:
    - AUC
    - BinaryAccuracy
    - ExampleCount
    - {{class: Recall, name: recall_of_war, params: {{class_id: 3}}}}{MACRO}
  slices: [[country]]
  thresholds:
    - {{metric: macro_auc, lower_bound: 0.99}}
    - {{metric: recall_of_war, lower_bound: 0.6}}
    - {{metric: auc, slice: [country], lower_bound: 0.9, min_examples_per_class: 20}}
""",
    "kinds": f"  metrics:\n    - SparseCategoricalAccuracy{MACRO}",
}
ONE = "presence { min_fraction: 1 } shape { dim { size: 1 } }"
SCHEMA = f"""
default_environment: "TRAINING" default_environment: "SERVING"
feature {{ name: "genres" type: BYTES domain: "genres" not_in_environment: "SERVING" }}
string_domain {{ name: "genres" {" ".join(f'value: "{x}"' for x in GENRES)} }}
feature {{ name: "x" type: FLOAT
  presence {{ min_fraction: 1 }} shape {{ dim {{ size: 4 }} }} }}
feature {{ name: "country" type: BYTES {ONE} }}
feature {{ name: "kind" type: INT int_domain {{ min: 0 max: 1 }}
  presence {{ min_fraction: 1 }} shape {{ dim {{ size: 3 }} }} }}
"""


def film(chance: random.Random) -> dict[str, list[Any]]:
    """Returns a record; one in four has no genre.

    Its kind is the place of the largest number, one-hot; some are wrong.
    """
    a, b, c, d = x = [chance.gauss(0, 1) for _ in range(4)]
    has = (a > 0, b > 0.5, a + c > 1, d > 1.5)
    genres = [name.encode() for name, one in zip(GENRES, has, strict=True) if one]
    # The second country has too few films to judge.
    country = b"FR" if chance.random() < 0.02 else b"US"
    kinds = sorted(range(3), key=lambda i: x[i], reverse=True)
    kind = kinds[0 if chance.random() < KIND_IS_RIGHT else chance.choice([1, 2])]
    return {
        "x": x,
        "country": [country],
        "genres": genres,
        "kind": [int(i == kind) for i in range(3)],
    }


def write(path: Path, count: int, seed: int) -> None:
    chance = random.Random(seed)
    records = [film(chance) for _ in range(count)]
    rows = [{name: x for name, x in record.items() if x} for record in records]
    tfrecord.write(path, map(encode, rows))


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """A project with records of three splits."""
    root = tmp_path_factory.mktemp("films")
    for name, label in LABELS.items():
        text = CONFIG.replace("NAME", name).replace("LABEL", label) + EVALUATE[name]
        write_project(root, name, text, SCHEMA)
    for seed, (split, count) in enumerate(
        {"train": 4000, "eval": 600, "test": 600}.items()
    ):
        write(root / "data" / f"{split}-0", count, seed)
    return root


@pytest.fixture(scope="module")
def run(films, run_config):
    """Runs a config to a pushed model; returns record, test records and answers."""
    from serving.predictor import Predictor

    def run(name):
        workspace = locate(films, name)
        record = run_config(load_config(name, cwd=films), workspace)
        assert record.status == "succeeded", (record.error, record.gates[-1:])
        predictor = Predictor(workspace.serving / "1")
        answers: list[Any] = [*predictor.predict_files([films / "data" / "test-0"])]
        chance = random.Random(2)
        return record, [film(chance) for _ in answers], answers

    return run


@pytest.fixture(scope="module")
def of_genres(run):
    return run("films")


@pytest.fixture(scope="module")
def record(of_genres):
    return of_genres[0]


@pytest.fixture(scope="module")
def answers(of_genres):
    """Labels and probabilities ``[films, genres]``, and the genres of each answer."""
    _, rows, found = of_genres
    labels = np.array([[x.encode() in row["genres"] for x in GENRES] for row in rows])
    return labels, _probabilities(found), [x.labels for x in found]


def _probabilities(answers):
    return np.array([[*x.probabilities.values()] for x in answers])


def _metrics(record, classes):
    """Returns the Evaluator's metrics of all examples, and their number per class."""
    from components.model_verdict.read_evaluation import read_candidate

    (uri,) = record.node("Evaluator").outputs["evaluation"]
    found = read_candidate(uri, classes)
    return found.metrics[()], found.examples_per_class[()]


def _macro(labels, probabilities, predicted):
    """Returns scikit-learn's macro averages of the classes that are predicted."""
    given = labels, predicted
    return {
        "macro_auc": metrics.roc_auc_score(labels, probabilities, average="macro"),
        "macro_precision": metrics.precision_score(*given, average="macro"),
        "macro_recall": metrics.recall_score(*given, average="macro"),
    }


def test_metrics_are_those_of_the_answers(record, answers):
    labels, probabilities, _ = answers
    found, counts = _metrics(record, GENRES)
    predicted = probabilities >= 0.5
    assert (labels.sum(axis=1) == 0).sum() > 100
    assert found["macro_auc"] > 0.99
    expected = {
        "example_count": len(labels),
        "auc": metrics.roc_auc_score(labels.ravel(), probabilities.ravel()),
        "binary_accuracy": (predicted == labels).mean(),
        "recall_of_war": metrics.recall_score(labels[:, 3], predicted[:, 3]),
        **_macro(labels, probabilities, predicted),
    }
    assert found == pytest.approx(expected, abs=1e-3)
    assert counts == dict(zip(GENRES, labels.sum(axis=0).tolist(), strict=True))


def test_the_answer_is_each_genre_that_is_likely(answers):
    _, probabilities, named = answers
    assert named == [
        [name for name, x in zip(GENRES, row, strict=True) if x >= 0.5]
        for row in probabilities
    ]
    assert [] in named


def test_the_gate_judges_averages_single_classes_and_large_slices(record):
    rows = {(row.check, row.slice): row for row in record.gate_rows("model")}
    assert all(row.passed for row in rows.values())
    assert rows["recall_of_war", "overall"].actual > 0.9
    assert rows["auc", "country: US"].why == ""
    assert "of class war; 20 of each needed" in rows["auc", "country: FR"].why


def test_one_hot_labels_are_learned_up_to_their_noise(run):
    record, rows, answers = run("kinds")
    names = ["long", "short", "mute"]
    labels = np.array([row["kind"] for row in rows])
    best = np.array([np.argmax(row["x"][:3]) for row in rows])
    assert [*answers[0].probabilities] == names
    predicted = np.array([names.index(answer.label) for answer in answers])
    assert (predicted == best).mean() > 0.95
    found, counts = _metrics(record, names)
    right = labels[np.arange(len(rows)), predicted].mean()
    assert right == pytest.approx(KIND_IS_RIGHT, abs=0.05)
    averages = _macro(labels, _probabilities(answers), np.eye(3)[predicted])
    expected = {"sparse_categorical_accuracy": right, **averages}
    assert found == pytest.approx(expected, abs=1e-3)
    assert [*counts.values()] == labels.sum(axis=0).tolist()
