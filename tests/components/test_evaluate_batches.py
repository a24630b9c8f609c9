"""TFMA's results are the same of batches as of single examples."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.tf, pytest.mark.acceptance]

OF_TWO = ("AUC", "BinaryAccuracy", "Precision", "ExampleCount")
OF_THREE = (
    "SparseCategoricalAccuracy",
    {"class": "AUC", "name": "auc_1", "params": {"class_id": 1}},
    {"class": "AUC", "name": "auc_macro", "average": "macro"},
    {"class": "Recall", "name": "recall", "average": "macro"},
    "ExampleCount",
)
OF_NUMBERS = ("MeanAbsoluteError", "MeanSquaredError", "MeanPrediction", "ExampleCount")
RECORDS = 1_100  # TFMA updates a Keras metric with 1,000 at once.


def _records(classes: int, count: int) -> list[dict[str, Any]]:
    source = random.Random(classes)
    labeled = 0.9 if classes == 3 else 1.0  # TFMA's metrics of two need a label.

    def label() -> Any:
        return source.randrange(classes) if classes else source.uniform(-1, 1)

    return [
        {
            "x": source.uniform(0.1, 3),
            "region": source.choice([b"north", b"south", None]),
            "w": source.choice([0.0, 0.5, 3.0]),
            "label": label() if source.random() < labeled else None,
        }
        for _ in range(count)
    ]


def _results(uri: Any) -> dict[str, Any]:
    """Returns by slice all metrics and plots."""
    import tensorflow_model_analysis as tfma

    found: dict[str, Any] = {}
    for model in tfma.load_eval_results(str(uri)).get_results():
        for kind, values in (("of", model.slicing_metrics), ("plot", model.plots)):
            for key, value in values:
                found[f"{kind} {key} {model.model_location}"] = value
    return found


def _numbers(value: Any) -> Any:
    """Returns the leaves of nested results, by their path."""
    if not isinstance(value, dict):
        return {"": value}
    return {
        f"{key}/{path}": leaf
        for key, part in value.items()
        for path, leaf in _numbers(part).items()
    }


@dataclass
class Counted:
    """What the elements of an evaluation were.

    Attributes:
      sizes: of each element; None for one example.
      splits: how many elements were split for a metric.
    """

    sizes: list[int | None] = field(default_factory=list)
    splits: int = 0


@pytest.fixture
def of_both(evaluations, tmp_path, monkeypatch):
    """Returns the results with batches, those of TFMA alone, and what was counted."""
    from components import evaluate_batches
    from sluice.patches import tfma

    def evaluate(classes, metrics, *, baseline=False, change=None, count=60, **given):
        place = evaluations(tmp_path / "place", classes, metrics, **given)
        properties = place.properties()
        if change:
            from google.protobuf import json_format
            from tensorflow_model_analysis.proto import config_pb2

            config = config_pb2.EvalConfig()
            json_format.Parse(properties["eval_config"], config)
            change(config)
            properties["eval_config"] = json_format.MessageToJson(config)
            place.properties = lambda: properties
        examples = place.write_examples("examples", _records(classes, count))
        old = place.write_model("old", 0.3) if baseline else None
        new = place.write_model("new", 0.7)
        counted = Counted()
        element, split = evaluate_batches._element, evaluate_batches._split

        def counted_element(keys, size, inputs):
            counted.sizes.append(size)
            return element(keys, size, inputs)

        def counted_split(batch):
            counted.splits += 1
            return split(batch)

        with monkeypatch.context() as patched:
            patched.setattr(evaluate_batches, "_element", counted_element)
            patched.setattr(evaluate_batches, "_split", counted_split)
            found = _results(place.evaluate(examples, new, old))
        monkeypatch.setattr(tfma, "KNOWN_VERSIONS", ())
        expected = _results(place.evaluate(examples, new, old))
        return _numbers(found), _numbers(expected), counted

    return evaluate


def _assert_equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        if isinstance(value, float):
            assert found[key] == pytest.approx(value, rel=1e-6, nan_ok=True), key
        else:
            assert np.array_equal(found[key], value), key


@pytest.mark.parametrize(
    ("classes", "metrics", "splits", "given"),
    [
        (2, OF_TWO, False, {"baseline": True, "count": RECORDS}),
        (3, OF_THREE, True, {"baseline": True}),
        (3, ("SparseCategoricalAccuracy",), False, {"slices": ()}),
        (0, OF_NUMBERS, True, {"slices": (("region",), ("region", "x"))}),
    ],
)
def test_metrics_of_batches_are_those_of_examples(
    of_both, classes, metrics, splits, given
):
    found, expected, counted = of_both(classes, metrics, **given)
    assert max(counted.sizes) > 4
    assert (counted.splits > 0) == splits
    assert any("south" in key for key in found) == (
        "slices" not in given or not classes
    )
    _assert_equal(found, expected)


def test_labels_that_are_no_array(of_both):
    """Without a shape in the schema TFMA has them as lists of values."""

    def raw(config: Any) -> None:
        config.model_specs[0].label_key = "label"
        del config.model_specs[0].preprocessing_function_names[:]

    found, expected, counted = of_both(2, OF_TWO, change=raw)
    assert counted.sizes == [None] * 60
    _assert_equal(found, expected)


@pytest.mark.parametrize("given", [{"intervals": True}, {}])
def test_what_needs_single_examples(of_both, given):
    metrics = ("BinaryAccuracy",)

    def small(config: Any) -> None:
        config.options.min_slice_size.value = 30

    change = None if given else small
    found, expected, counted = of_both(2, metrics, change=change, **given)
    assert not counted.sizes
    assert found.keys() == expected.keys()
