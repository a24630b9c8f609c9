"""The TFMA metrics of examples per class, and of predictions."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest

pytestmark = pytest.mark.tf

REGIONS: list[bytes | None] = [b"north", b"south", None]


def _records(classes: int) -> list[dict[str, Any]]:
    """Returns records; one class has no example, one in ten has no label."""
    source = random.Random(classes)
    return [
        {
            "x": source.uniform(-3, 3),
            "region": source.choice(REGIONS),
            "label": source.randrange(max(2, classes - 1))
            if source.random() < 0.9
            else None,
        }
        for _ in range(300)
    ]


def _predicted(classes: int, x: float) -> list[float]:
    if classes == 2:
        return [1 / (1 + math.exp(-x))]
    exponentials = [math.exp(x * i) for i in range(classes)]
    return [value / sum(exponentials) for value in exponentials]


@pytest.mark.parametrize("classes", [2, 3, 40])
def test_counts_are_those_of_labels_and_predictions(evaluations, tmp_path, classes):
    from components.model_verdict.read_evaluation import read_candidate
    from reports.evaluation import OVERALL, confusion_matrices, read_metrics
    from runners.documents.protos import metrics

    place = evaluations(tmp_path / "place", classes)
    records = _records(classes)
    examples = place.write_examples("examples", records)
    uri = place.evaluate(examples, place.write_model("model", 1.0))

    found = read_candidate(str(uri), place.class_names).examples_per_class
    assert set(found) == {(), *((("region", name),) for name in ("north", "south"))}
    for key, counts in found.items():
        wanted = [value.encode() for _, value in key] or REGIONS
        counted = Counter(
            record["label"] for record in records if record["region"] in wanted
        )
        assert counted.pop(None) > 0
        assert list(counts) == place.class_names
        assert {int(name): n for name, n in counts.items() if n} == dict(counted)

    expected = [[0] * 100, [0] * 100]
    confused = [[0] * classes for _ in range(classes)]
    for record in records:
        if (label := record["label"]) is not None:
            shares = _predicted(classes, record["x"])
            row = label if classes == 2 else int(shares.index(max(shares)) == label)
            expected[row][int(max(shares) * 100)] += 1
            predicted = (
                int(shares[0] >= 0.5) if classes == 2 else shares.index(max(shares))
            )
            confused[label][predicted] += 1
    document = metrics(uri)
    assert document is not None
    # The record keeps that of all examples, not of slices.
    histograms = [x for x in read_metrics(document) if "histogram" in x.name]
    assert [x.slice for x in histograms] == [OVERALL]
    assert histograms[0].array == expected[0] + expected[1]
    assert confusion_matrices(document, classes)["candidate"].tolist() == confused


@pytest.mark.acceptance
@pytest.mark.parametrize("intervals", [False, True])
def test_the_confusion_matrix_is_tfmas_plot(evaluations, tmp_path, intervals):
    """Each slice and both models are compared; every example has a label."""
    import tensorflow_model_analysis as tfma

    records = [row for row in _records(5) if row["label"] is not None]
    found = []
    for metric in ("ExampleCount", "MultiClassConfusionMatrixPlot"):
        place = evaluations(tmp_path / metric, 5, [metric], intervals=intervals)
        examples = place.write_examples("examples", records)
        models = place.write_model("model", 1.0), place.write_model("baseline", -0.5)
        plots = tfma.load_plots(str(place.evaluate(examples, *models)))
        found.append(sorted(map(str, plots)))
    ours, theirs = found
    assert len(ours) == 3
    assert ours == theirs
