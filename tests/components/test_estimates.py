"""Intervals and references of the Evaluator, held against TFMA and drawn test sets."""

from __future__ import annotations

import random
from typing import Any

import pytest

from components.model_verdict.read_evaluation import read_evaluation
from components.model_verdict.settings import EFFECTIVE_EXAMPLES
from tests.components.conftest import Evaluations

pytestmark = pytest.mark.tf

_OF_CLASSES = [
    {"class": "AUC"},
    {"class": "AUC", "name": "pr", "params": {"curve": "PR"}},
    "BinaryAccuracy",
    "BalancedAccuracy",
    "BinaryCrossentropy",
    "Precision",
    "Recall",
    "F1Score",
]
_OF_MANY = [
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    {"class": "AUC", "name": "macro_auc", "average": "macro"},
    {"class": "Recall", "name": "macro_recall", "average": "macro"},
    {"class": "Precision", "name": "precision_1", "params": {"class_id": 1}},
]
_OF_LABELS = ["BinaryAccuracy", "Recall", {"class": "AUC", "average": "macro"}]
_OF_NUMBERS = ["MeanSquaredError", "RootMeanSquaredError", "MeanAbsoluteError"]
_CASES: dict[str, tuple[int, list[Any]]] = {
    "two": (2, _OF_CLASSES),
    "three": (3, _OF_MANY),
    "numbers": (0, _OF_NUMBERS),
}
_CASES |= {"labels": (3, _OF_LABELS)}


def _records(classes: int, several: bool, count: int) -> list[dict]:
    source = random.Random(3)
    rows = []
    for i in range(count):
        x = source.gauss(0, 1)
        label: object = x + source.gauss(0, 0.5)
        if several:
            label = [k for k in range(classes) if source.random() < 0.3 + 0.1 * k]
        elif classes:
            label = min(classes - 1, max(0, round(abs(x) + source.gauss(0, 0.7))))
        region = [b"north", b"south"][i % 5 == 0]
        rows.append({"x": x, "region": region, "label": label, "w": 0.5 + i % 3})
    return rows


@pytest.mark.parametrize("weighted", ["", "FLOAT"])
@pytest.mark.parametrize("case", _CASES)
def test_metrics_are_those_of_tfma(case, weighted, tmp_path):
    """Also of a slice; each interval is around the value, the change in its own."""
    classes, metrics = _CASES[case]
    several = case == "labels"
    place = Evaluations(tmp_path, classes, metrics, several=several, weighted=weighted)
    examples = place.write_examples("examples", _records(classes, several, 400))
    models = [place.write_model(name, slope) for name, slope in (("a", 1.2), ("b", 1))]
    uri = str(place.evaluate(examples, *models))
    measured = {
        name: read_evaluation(uri, name, place.class_names)
        for name in ("candidate", "baseline")
    }
    of_candidate = measured["candidate"]
    sizes = {(): 400, (("region", "north"),): 320, (("region", "south"),): 80}
    found = of_candidate.estimates
    assert {key: x.examples for key, x in found.items()} == sizes
    for key, estimates in found.items():
        values = of_candidate.metrics[key]
        own = {name for name in values if not name.endswith("_diff")}
        assert {*estimates.metrics} == own - {EFFECTIVE_EXAMPLES}
        for name, known in estimates.metrics.items():
            tolerance = 0.02 if name == "pr" else 2e-3 if "auc" in name else 1e-5
            assert known.value == pytest.approx(values[name], abs=tolerance)
            assert known.is_of(values[name]) and not known.is_of(values[name] + 1)
            before = measured["baseline"].metrics[key][name]
            low, high = known.changes["baseline"] or (0, 0)
            # The two models are nearly one: their difference is better known.
            assert abs(values[name] - before) < 0.2
            assert known.interval is not None
            assert high - low < known.interval[1] - known.interval[0]
