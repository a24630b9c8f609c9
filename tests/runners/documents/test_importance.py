"""Permutation importance of models whose losses are known."""

import random
import time
from typing import Any

import numpy as np
import pytest

from runners.documents import importance as importance_module
from runners.documents.examples import ExampleRecord, ExportedModel
from runners.documents.importance import importance
from sample_data.tf_example import encode
from sluice.tfrecords.parse_tf_example import parse

pytestmark = pytest.mark.unit

CHANCE = random.Random(1)
ROWS = [(CHANCE.gauss(0, 3), CHANCE.gauss(0, 1), CHANCE.random()) for _ in range(900)]


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """A busy machine may be slow: then fewer examples are used."""
    monkeypatch.setattr(importance_module, "MAX_SECONDS", 60.0)


def _records():
    records = []
    for a, b, c in ROWS:
        row = {"a": [a], "b": [b], "label": [2 * a]} | ({"c": [c]} if c < 0.5 else {})
        records.append(ExampleRecord("test", "file", 1, encode(row)))
    return records


def _values(data, name):
    features = (parse(x).features.feature for x in data)
    return np.array(
        [x[name].float_list.value[0] if name in x else 0.0 for x in features]
    )


def _model(predict, classes=()):
    def label(data):
        found = _values(data, "label")
        return (found > 0).astype(int)[:, None] if classes else found[:, None]

    return ExportedModel(list(classes), ["a", "b", "c"], predict, label)


def _changes(found: Any) -> dict[str, list[float]]:
    return {x["feature"]: x["changes"] for x in found["features"]}


def test_what_a_regression_does_not_read_is_worth_nothing():
    missing = []

    def predict(data):
        missing.append(sum("c" not in parse(x).features.feature for x in data))
        return 2 * _values(data, "a")[:, None]

    found = importance(_model(predict), _records(), "regression", None)
    assert found and (found["examples"], found["value"]) == (900, pytest.approx(0))
    changes = _changes(found)
    assert changes.pop("b") == changes.pop("c") == [0.0] * 3
    spread = np.std([a for a, *_ in ROWS])
    assert changes["a"] == pytest.approx([2 * spread * 2**0.5] * 3, rel=0.1)
    assert len({*changes["a"]}) == 3, "each repeat is another permutation"
    assert len({*missing[1:]}) == 1, "missing values are moved, too"


def test_a_classifier_loses_as_much_as_it_was_sure():
    def predict(data):
        yes = np.where(_values(data, "a") > 0, 0.9, 0.1)
        return np.stack([1 - yes, yes], axis=1)

    model = _model(predict, ("no", "yes"))
    found = importance(model, _records(), "classification", None)
    assert found and found["value"] == pytest.approx(-np.log(0.9))
    # Half of the examples get a value of the other class.
    half = (np.log(0.9) - np.log(0.1)) / 2
    assert _changes(found)["a"] == pytest.approx([half] * 3, rel=0.1)


def test_several_targets_count_in_their_standard_deviations():
    """The second is a hundred times as large; both are wrong by half a deviation."""
    spread = np.std([2 * a for a, *_ in ROWS])

    def labels(data):
        return _values(data, "label")[:, None] * [1.0, 100.0]

    def predict(data):
        return 2 * _values(data, "a")[:, None] * [1.0, 100.0] + spread * np.array(
            [0.5, 50.0]
        )

    model = ExportedModel([], ["a", "b"], predict, labels)
    found = importance(model, _records(), "regression", None)
    assert found and found["loss"] == "root mean squared error in standard deviations"
    assert found["value"] == pytest.approx(0.5, rel=0.05)


def test_a_slow_model_is_asked_about_fewer_examples(monkeypatch):
    def predict(data):
        time.sleep(1e-5 * len(data))
        return _values(data, "a")[:, None]

    monkeypatch.setattr(importance_module, "MAX_SECONDS", 0.05)
    found = importance(_model(predict), _records(), "regression", None)
    assert found is None or found["examples"] < 600
    one = ExportedModel([], ["a"], predict, predict)
    assert importance(one, _records(), "regression", None) is None


def test_any_example_is_as_likely_to_be_used_as_another():
    records = [
        ExampleRecord("test", "file", i, encode({"a": [float(i)], "label": [0.0]}))
        for i in range(5_000)
    ]
    used: list[Any] = []

    def predict(data):
        used.append(_values(data, "a"))
        return used[-1][:, None]

    importance(_model(predict), iter(records), "regression", None)
    _timed, before, *_ = used
    assert len({*before}) == importance_module.MAX_EXAMPLES
    assert np.mean(before) == pytest.approx(2_500, rel=0.05)
