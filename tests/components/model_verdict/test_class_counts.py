"""The TFMA metric of examples per class and slice."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

pytestmark = pytest.mark.tf

REGIONS: list[bytes | None] = [b"north", b"south", None]


def _records(classes: int) -> list[dict[str, Any]]:
    source = random.Random(classes)
    # One class without examples, one example in ten without a label.
    return [
        {
            "x": source.random(),
            "region": source.choice(REGIONS),
            "label": source.randrange(classes - 1) if source.random() < 0.9 else None,
        }
        for _ in range(300)
    ]


@pytest.mark.parametrize("classes", [2, 3, 40])
def test_counts_are_those_of_the_labels(evaluations, tmp_path, classes):
    from components.model_verdict.read_evaluation import read_candidate

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


def test_the_work_does_not_grow_with_the_classes():
    from tensorflow_model_analysis.metrics import metric_specs

    from pipeline.config.feature_set import Label
    from pipeline.graph.arguments import eval_config

    def computations(classes: int) -> int:
        label = Label("label", tuple(range(classes)))
        config = eval_config([("ExampleCount", None, {})], [["region"]], label)
        return len(metric_specs.to_computations(list(config.metrics_specs), config))

    assert computations(1000) == computations(3)


def test_the_record_keeps_the_counts(evaluations, tmp_path):
    from reports.evaluation import read_metrics
    from runners.documents.protos import metrics

    place = evaluations(tmp_path / "place", 3, slices=())
    labels = [0, 2, 2, None]
    examples = place.write_examples("all", [{"x": 0.5, "label": n} for n in labels])
    uri = place.evaluate(examples, place.write_model("model", 1.0))
    document = metrics(uri)
    assert document is not None
    found = {item.name: item for item in read_metrics(document)}
    assert found["example_count"].value == 4.0
    assert found["examples_per_class"].array == [1, 0, 2]
