"""The TFMA metric of predictions by probability."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

pytestmark = pytest.mark.tf


def _records(classes: int) -> list[dict[str, Any]]:
    source = random.Random(classes)
    return [
        {
            "x": source.uniform(-3, 3),
            "region": b"north",
            "label": source.randrange(classes) if source.random() < 0.9 else None,
        }
        for _ in range(200)
    ]


def _softmax(values: list[float]) -> list[float]:
    exponentials = [math.exp(value) for value in values]
    return [value / sum(exponentials) for value in exponentials]


@pytest.mark.parametrize("classes", [2, 3])
def test_it_counts_predictions_by_probability(evaluations, tmp_path, classes):
    """Examples without a label are left out; the record keeps that of all examples."""
    import tensorflow_model_analysis as tfma

    from runners.documents.protos import metrics

    place = evaluations(tmp_path / "place", classes)
    records = _records(classes)
    examples = place.write_examples("examples", records)
    uri = place.evaluate(examples, place.write_model("model", 1.0))

    expected = [[0] * 100, [0] * 100]
    for record in records:
        if (label := record["label"]) is None:
            continue
        if classes == 2:
            row, probability = label, 1 / (1 + math.exp(-record["x"]))
        else:
            shares = _softmax([record["x"] * i for i in range(classes)])
            probability = max(shares)
            row = int(shares.index(probability) == label)
        expected[row][int(probability * 100)] += 1
    result = tfma.load_eval_result(str(uri))
    assert {key for key, _ in result.slicing_metrics} == {(), (("region", "north"),)}
    document = metrics(uri)
    assert document is not None
    overall, north = (
        {x["key"]["name"]: x["value"] for x in item["metric_keys_and_values"]}
        for item in document["metrics"]
    )
    found = overall["prediction_histogram"]["array_value"]
    values = [int(value) for value in found["int64_values"]]
    assert values == expected[0] + expected[1]
    assert "prediction_histogram" not in north
    (value,) = (
        named["prediction_histogram"]
        for key, outputs in result.slicing_metrics
        if not key
        for named in outputs[""].values()
        if "prediction_histogram" in named
    )
    assert [int(n) for n in value["arrayValue"]["int64Values"]] == values
