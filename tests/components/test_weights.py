"""Weighted evaluations equal scikit-learn's, of batches and of single examples."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics

from components.model_verdict.judge import BaselineSummary, judge
from components.model_verdict.read_evaluation import read_candidate, read_evaluation
from components.model_verdict.settings import Settings
from reports.evaluation import confusion_matrices
from runners.documents.protos import metrics as document_of

pytestmark = pytest.mark.tf

NORTH = (("region", "north"),)


def _records(classes: int, several: bool) -> list[dict[str, Any]]:
    source, found = random.Random(8), []
    for _ in range(400):
        x = source.uniform(-2, 2)
        top = min(classes - 1, max(0, round(x + 1 + source.gauss(0, 0.8))))
        label: Any = top if classes else 2 * x + source.gauss(0, 1)
        region = source.choice([b"north", b"south"])
        if several:
            label = [i for i in range(classes) if source.random() < 0.3 + 0.2 * (i < x)]
        # A wrong answer weighs more, so that no unweighted value is right by chance.
        weight = source.choice([0.0, 0.5, 4.0]) * (3 if x > 1 else 1)
        found.append({"x": x, "region": region, "w": weight, "label": label})
    return found


def _of_one(rows: list[dict[str, Any]], classes: int, slope: float) -> dict[str, float]:
    """Returns what scikit-learn says of a classification."""
    x, y, w = (np.array([row[name] for row in rows]) for name in ("x", "label", "w"))
    bends = 0.5 * np.square(np.arange(classes) - 1) * (classes > 2)
    scores = np.exp(slope * (np.outer(x, range(classes)) - bends))
    shares = scores / scores.sum(axis=1, keepdims=True)
    named = shares.argmax(axis=1)
    found = {"accuracy": metrics.accuracy_score(y, named, sample_weight=w)}
    if classes == 2:
        p = shares[:, 1]
        found["auc"] = metrics.roc_auc_score(y, p, sample_weight=w)
        found["precision"] = metrics.precision_score(y, named, sample_weight=w)
        found["log_loss"] = metrics.log_loss(y, p, sample_weight=w)
        return found
    ones = np.eye(classes)[y]
    for name in ("precision", "recall", "f1"):
        score = getattr(metrics, f"{name}_score")
        of_each = score(y, named, average=None, sample_weight=w)
        found |= {f"macro_{name}": of_each.mean(), f"{name}_2": of_each[2]}
    found["auc"] = metrics.roc_auc_score(ones, shares, sample_weight=w)
    return found


def _of_several(rows: list[dict[str, Any]], slope: float) -> dict[str, float]:
    labels = np.array([[i in row["label"] for i in range(3)] for row in rows])
    x, w = (np.array([row[name] for row in rows]) for name in ("x", "w"))
    p = 1 / (1 + np.exp(np.arange(3) - slope * x[:, None]))
    given = {"average": "macro", "sample_weight": w}
    return {
        "accuracy": np.average(((p > 0.5) == labels).mean(axis=1), weights=w),
        "auc": metrics.roc_auc_score(labels, p, **given),
        "recall": metrics.recall_score(labels, p > 0.5, **given),
    }


def _of_numbers(rows: list[dict[str, Any]], slope: float) -> dict[str, float]:
    x, y, w = (np.array([row[name] for row in rows]) for name in ("x", "label", "w"))
    if y.ndim > 1:  # Targets, of which each prediction is a thousandth of the last.
        of_each = []
        for i, name in enumerate(TARGETS):
            one = [{**row, "label": row["label"][i]} for row in rows]
            found = _of_numbers(one, slope / 1000**i)
            of_each += [(f"{name}_{metric}", value) for metric, value in found.items()]
        return dict(of_each)
    error, variation = slope * x - y, y - np.average(y, weights=w)
    return {
        "mean_absolute_error": np.average(np.abs(error), weights=w),
        "mean_squared_error": np.average(error**2, weights=w),
        "root_mean_squared_error": np.average(error**2, weights=w) ** 0.5,
        "r2_score": 1 - (w * error**2).sum() / (w * variation**2).sum(),
        "relative_error": (w * np.abs(error)).sum() / (w * np.abs(y)).sum(),
    }


OF_TWO = [
    {"class": "BinaryAccuracy", "name": "accuracy"},
    "AUC",
    "Precision",
    {"class": "BinaryCrossentropy", "name": "log_loss"},
]
OF_THREE: list[dict[str, Any]] = [
    {"class": "SparseCategoricalAccuracy", "name": "accuracy"},
    {"class": "AUC", "name": "auc", "average": "macro"},
]
for _name in ("Precision", "Recall", "F1Score"):
    _short = _name.removesuffix("Score").lower()
    OF_THREE.append({"class": _name, "name": f"macro_{_short}", "average": "macro"})
    OF_THREE.append({"class": _name, "name": f"{_short}_2", "params": {"class_id": 2}})
OF_SEVERAL = [
    {"class": "BinaryAccuracy", "name": "accuracy"},
    {"class": "AUC", "average": "macro"},
    {"class": "Recall", "average": "macro"},
]
NUMBERS = """
MeanAbsoluteError MeanSquaredError R2Score RelativeError RootMeanSquaredError
""".split()
OF_NUMBERS = [{"class": name} for name in NUMBERS]
TARGETS = ("price", "days")
OF_TARGETS = [{**item, "target": name} for name in TARGETS for item in OF_NUMBERS]


@pytest.mark.parametrize(
    "in_batches", [True, pytest.param(False, marks=pytest.mark.acceptance)]
)
@pytest.mark.parametrize(
    ("classes", "several", "names"),
    [
        (2, False, OF_TWO),
        (3, False, OF_THREE),
        (3, True, OF_SEVERAL),
        (0, False, OF_NUMBERS),
        (0, False, OF_TARGETS),
    ],
)
def test_weighted_metrics(
    evaluations, tmp_path, monkeypatch, classes, several, names, in_batches
):
    """All examples and a slice are measured, of candidate and baseline."""
    from sluice.patches import tfma

    if not in_batches:
        monkeypatch.setattr(tfma, "KNOWN_VERSIONS", ())
    given = {"weighted": "INT" if in_batches else "FLOAT", "several": several}
    given |= {"targets": TARGETS} if names is OF_TARGETS else {}
    place = evaluations(tmp_path / "place", classes, [*names, "ExampleCount"], **given)
    records = _records(classes, several)
    if names is OF_TARGETS:
        source = np.random.default_rng(3)
        for row in records:
            days = row["x"] / 1000 + source.normal(0, 0.0001)
            row["label"] = [row["label"], days]
    if in_batches:
        records = [{**row, "w": int(2 * row["w"])} for row in records]
    examples = place.write_examples("examples", records)
    models = [place.write_model(str(slope), slope, 0.5) for slope in (1.5, 0.7)]
    uri = str(place.evaluate(examples, *models))
    found = read_candidate(uri, place.class_names)
    parts = {(): records, NORTH: [x for x in records if x["region"] == b"north"]}
    for model, slope in (("candidate", 1.5), ("baseline", 0.7)):
        measured = read_evaluation(uri, model, place.class_names)
        for key, rows in parts.items():
            if several:
                expected = _of_several(rows, slope)
            elif classes:
                expected = _of_one(rows, classes, slope)
            else:
                expected = _of_numbers(rows, slope)
            w = np.array([row["w"] for row in rows])
            effective = w.sum() ** 2 / (w**2).sum()
            expected |= {"effective_example_count": effective}
            expected |= {"example_count": len(rows)}
            values = {x: measured.metrics[key].get(x) for x in expected}
            limit = 1e-12 if names is OF_TARGETS else 1e-3
            assert values == pytest.approx(expected, rel=1e-4, abs=limit)
    if names is OF_TARGETS:
        # The price's error is 1.1, that of days a thousandth: only its limit fails.
        limits = {"price_mean_absolute_error": 1.3, "days_mean_absolute_error": 1e-4}
        thresholds = [{"metric": x, "upper_bound": y} for x, y in limits.items()]
        given = {"thresholds": thresholds, "classes": [], "split": "test"}
        verdict = judge(Settings(**given), found, None, BaselineSummary())
        judged = {x.check: x.passed for x in verdict.rows}
        assert [judged[name] for name in limits] == [True, False]
    if not classes:
        return
    counts = found.examples_per_class[()].values()
    labels = [x for row in records for x in np.atleast_1d(row["label"])]
    assert [*counts] == [*np.bincount(np.array(labels, int))]
    document = document_of(Path(uri))
    if document and not several:
        x, y, w = (np.array([r[name] for r in records]) for name in ("x", "label", "w"))
        named = (x > 0) * 1 if classes == 2 else (x > -0.5) * 1 + (x > 0.5)
        matrix = metrics.confusion_matrix(y, named, sample_weight=w)
        assert confusion_matrices(document, classes)["candidate"] == pytest.approx(
            matrix
        )


@pytest.mark.parametrize("weight", [float("nan"), -1.0])
def test_a_weight_that_is_none_fails(evaluations, tmp_path, weight):
    place = evaluations(tmp_path / "place", 2, ["AUC"], weighted="FLOAT")
    records = [*_records(2, False)[:5], {"x": 0.1, "label": 1, "w": weight}]
    examples = place.write_examples("examples", records)
    with pytest.raises(ValueError, match="one sample weight, a finite number from 0"):
        place.evaluate(examples, place.write_model("model", 1.0))


@pytest.mark.parametrize(
    ("scale", "in_batches"), [(1.0, True), (1e-6, True), (1e-6, False)]
)
def test_areas_of_rare_positives(evaluations, tmp_path, monkeypatch, scale, in_batches):
    """However small all probabilities are."""
    from sluice.patches import tfma

    if not in_batches:
        monkeypatch.setattr(tfma, "KNOWN_VERSIONS", ())
    area = {"class": "AUC", "name": "auc_pr", "params": {"curve": "PR"}}
    place = evaluations(tmp_path / "place", 2, ["AUC", area], slices=())
    source = random.Random(5)
    # The model's probability is the sigmoid of x.
    records: list[dict[str, Any]] = []
    for _ in range(2_000):
        z = source.gauss(0, 1)
        label = int(source.random() < 0.1 * np.exp(0.8 * z))
        records.append({"x": float(np.log(scale) - 3 + z), "label": label})
    examples = place.write_examples("examples", records)
    uri = place.evaluate(examples, place.write_model("model", 1.0))
    labels, x = ([row[name] for row in records] for name in ("label", "x"))
    found = read_candidate(str(uri), place.class_names).metrics[()]
    assert found == pytest.approx(
        {
            "auc": metrics.roc_auc_score(labels, x),
            "auc_pr": metrics.average_precision_score(labels, x),
        },
        abs=0.01,
    )
