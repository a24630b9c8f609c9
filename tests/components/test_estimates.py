"""Intervals and references of the Evaluator, held against TFMA and drawn test sets."""

from __future__ import annotations

import dataclasses
import functools
import random
from typing import Any

import numpy as np
import pytest

from components.bootstrap import Examples, MetricOfModel, estimates
from components.model_verdict.read_evaluation import read_evaluation
from components.model_verdict.settings import EFFECTIVE_EXAMPLES
from sluice.metrics import result_name
from sluice.uncertainty import Uncertainty
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
_OF_NUMBERS += ["R2Score", "RelativeError"]
_TARGETS = ("price", "days")
_OF_TARGETS = [
    {"class": kind, "target": target} for kind in _OF_NUMBERS for target in _TARGETS
]
_CASES: dict[str, tuple[int, list[Any]]] = {
    "two": (2, _OF_CLASSES),
    "three": (3, _OF_MANY),
    "labels": (3, _OF_LABELS),
    "numbers": (0, _OF_NUMBERS),
    "targets": (0, _OF_TARGETS),
}


def _records(case: str, classes: int, count: int) -> list[dict[str, Any]]:
    source = random.Random(3)
    rows = []
    for i in range(count):
        x = source.gauss(0, 1)
        label: object = x + source.gauss(0, 0.5)
        if case == "targets":
            label = [label, (x + source.gauss(0, 0.3)) / 1000]
        elif case == "labels":
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
    place = Evaluations(
        tmp_path,
        classes,
        metrics,
        several=case == "labels",
        weighted=weighted,
        targets=_TARGETS if case == "targets" else (),
    )
    examples = place.write_examples("examples", _records(case, classes, 400))
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
    for key, of_slice in found.items():
        values = of_candidate.metrics[key]
        own = {name for name in values if not name.endswith("_diff")}
        assert {*of_slice.metrics} == own - {EFFECTIVE_EXAMPLES}
        for name, known in of_slice.metrics.items():
            tolerance = 0.02 if name == "pr" else 2e-3 if "auc" in name else 1e-9
            expected = pytest.approx(values[name], rel=1e-4, abs=tolerance)
            assert known.value == expected
            assert known.is_of(values[name]) and not known.is_of(values[name] + 1)
            before = measured["baseline"].metrics[key][name]
            low, high = known.changes["baseline"] or (0, 0)
            # The two models are nearly one: their difference is better known.
            assert abs(values[name] - before) < 0.2
            assert known.interval is not None
            assert high - low < known.interval[1] - known.interval[0]


def _metric(name: str, **more: Any) -> MetricOfModel:
    return MetricOfModel(name, result_name(name), name, **more)


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("MeanAbsolutePercentageError", lambda y, c: 100 * np.abs(y - c) / y),
        ("MeanSquaredLogarithmicError", lambda y, c: np.log((y + 1) / (c + 1)) ** 2),
        ("MeanAbsoluteError", lambda y, c: np.abs(y - c)),
    ],
)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_no_constant_prediction_is_better_than_the_reference(name, loss, is_weighted):
    """Found: of a relative error it was the median, which many were better than."""
    source = np.random.default_rng(2)
    y = source.lognormal(3.0, 1.5, 500)
    weights = source.uniform(0.1, 5, 500) if is_weighted else None
    given = Examples(y[:, None], {"": y[:, None]}, weights, 500)
    reference = estimates([_metric(name)], given, "")[name]["reference"]
    others = [
        np.average(loss(y, c), weights=weights) for c in np.geomspace(0.1, 999, 99)
    ]
    assert 0.95 * min(others) < reference <= min(others) * (1 + 1e-6)


def test_a_sample_of_many_examples_is_of_the_same_metric():
    """Found: its value scatters more than the interval of all examples."""
    source = np.random.default_rng(3)
    labels = (source.random(20_000) < 0.002).astype(int)
    scores = 1 / (1 + np.exp(-source.normal(2 * labels - 6, 1)))[:, None]
    given = Examples(labels, {"": scores}, None, 1_000_000)
    known = Uncertainty(**estimates([_metric("Recall")], given, "")["Recall"])
    assert known.interval is not None
    low, high = known.interval
    assert known.is_of(known.value + 5 * high) and not known.is_of(
        known.value + 99 * high
    )


def test_references_of_an_imbalanced_set():
    """Of 1,000 examples 30 are positive; each of these weighs twice as much."""
    labels = np.array([1] * 30 + [0] * 970)
    predictions = np.linspace(0.9, 0.1, 1000)[:, None]
    metrics = [_metric(x) for x in ("AUC", "BinaryAccuracy", "BinaryCrossentropy")]
    metrics += [_metric("Recall"), _metric("AUC", params={"curve": "PR"})]
    metrics[-1] = dataclasses.replace(metrics[-1], name="pr")
    for weights, share in ((None, 0.03), (labels + 1.0, 60 / 1030)):
        given = Examples(labels, {"": predictions}, weights, 1000)
        found = {x: y["reference"] for x, y in estimates(metrics, given, "").items()}
        entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
        assert found == pytest.approx(
            {
                **{"AUC": 0.5, "pr": share, "BinaryAccuracy": 1 - share},
                # Of a recall no constant prediction says anything.
                **{"BinaryCrossentropy": entropy, "Recall": None},
            },
            rel=1e-5,
        )


def test_references_of_numbers_are_mean_and_median():
    source = np.random.default_rng(1)
    labels = np.exp(source.normal(size=(500, 2)) * [1, 2])
    names = ("RootMeanSquaredError", "MeanAbsoluteError", "R2Score", "RelativeError")
    for target in (0, 1):
        metrics = [_metric(name, target=target) for name in names]
        given = Examples(labels, {"": np.ones_like(labels)}, None, 500)
        found = {x: y["reference"] for x, y in estimates(metrics, given, "").items()}
        y = labels[:, target]
        from_median = np.abs(y - np.median(y))
        expected = [y.std(), from_median.mean(), 0.0, from_median.sum() / y.sum()]
        assert [found[x] for x in names] == pytest.approx(expected, rel=1e-4, abs=1e-9)


@functools.cache
def _population() -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(5)
    labels = (source.random(400_000) < 0.2).astype(int)
    scores = source.normal(size=400_000) + 1.2 * labels
    return labels, 1 / (1 + np.exp(2.5 - 1.2 * scores))


_COVERED = """
AUC BinaryAccuracy BinaryCrossentropy F1Score Recall Precision BalancedAccuracy
""".split()


def test_intervals_cover_the_metric_of_the_population_in_95_percent_of_test_sets():
    """Of 200 test sets of 1,000; also those of larger sets, by groups."""
    labels, scores = _population()
    metrics = [*map(_metric, _COVERED)]
    of_all = estimates(metrics, _examples(labels, scores), "")
    source = np.random.default_rng(6)
    covered = dict.fromkeys(_COVERED, 0)
    for size in [1000] * 150 + [3000] * 50:
        rows = source.integers(len(labels), size=size)
        found = estimates(metrics, _examples(labels[rows], scores[rows]), "")
        for name, known in found.items():
            low, high = known["interval"]
            difference = of_all[name]["value"] - known["value"]
            covered[name] += low <= difference <= high
    assert {x: n / 200 for x, n in covered.items()} == pytest.approx(
        dict.fromkeys(_COVERED, 0.95), abs=0.03 + 1e-9
    )


def _examples(labels: np.ndarray, scores: np.ndarray) -> Examples:
    return Examples(labels, {"": scores[:, None]}, None, len(labels))
