"""Evaluations of one and of two models, as the model gate reads them."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.model_verdict.read_evaluation import read_candidate, read_evaluation
from components.model_verdict.settings import Settings
from sluice.record.verdict import Verdict
from tests.components.conftest import artifact

pytestmark = pytest.mark.tf


def _records() -> list[dict[str, Any]]:
    source = random.Random(1)
    return [
        {
            "x": source.uniform(-1, 1),
            "region": source.choice([b"north", b"south"]),
            "label": source.randrange(2),
        }
        for _ in range(60)
    ]


@pytest.mark.acceptance
def test_a_model_is_measured_alike_with_and_without_a_baseline(evaluations, tmp_path):
    from components.artifacts import ABSENT

    names = ("AUC", "BinaryAccuracy", "MeanPrediction", "ExampleCount")
    place = evaluations(tmp_path / "place", 2, names)
    examples = place.write_examples("examples", _records())
    old, new = place.write_model("old", 1.0), place.write_model("new", -2.0)
    alone = read_candidate(str(place.evaluate(examples, new)), place.class_names)
    # As LatestBlessedModel publishes it in a service that has no baseline.
    absent = str(place.evaluate(examples, old, old, custom_property=ABSENT))
    before = read_candidate(absent, place.class_names)
    assert not read_evaluation(absent, "baseline", place.class_names).metrics

    evaluation = place.evaluate(examples, new, old)
    found = {
        "candidate": read_candidate(str(evaluation), place.class_names),
        "baseline": read_evaluation(str(evaluation), "baseline", place.class_names),
    }
    for model, measured in (("candidate", alone), ("baseline", before)):
        assert found[model].examples_per_class == measured.examples_per_class
        for key, values in measured.metrics.items():
            assert {x: found[model].metrics[key][x] for x in values} == (
                pytest.approx(values)
            )


def _decides(model: Any, threshold: float, classes: tuple[str, str]) -> Any:
    facts = {"task": "classification", "classes": classes, "threshold": threshold}
    folder = model / "Format-Serving" / "assets.extra"
    folder.mkdir()
    (folder / "classes.json").write_text(json.dumps(facts))
    return model


def test_each_model_is_measured_at_its_own_threshold(evaluations, tmp_path):
    """It is inclusive: a third of the probabilities are the threshold itself."""
    from reports.evaluation import confusion_matrices, decision_thresholds
    from runners.documents.protos import metrics

    names = ("Precision", "Recall", "F1Score", "BinaryAccuracy", "FalsePositives")
    fixed = {"class": "Recall", "name": "at_half", "params": {"thresholds": 0.5}}
    place = evaluations(tmp_path / "place", 2, [*names, fixed], weighted="FLOAT")
    source = random.Random(4)
    records = [
        {"x": source.choice([-1.0, 0.0, 2.0]), "w": source.choice([0.5, 3.0])}
        for _ in range(90)
    ]
    records = [row | {"label": int(source.random() < 0.4)} for row in records]
    examples = place.write_examples("examples", records)
    x, w, y = (np.array([row[key] for row in records]) for key in ("x", "w", "label"))
    low = float(str(np.float32(1 / (1 + np.exp(np.float32(1))))))
    classes = ("0", "1")
    new = _decides(place.write_model("new", 1.0), low, classes)
    old = _decides(place.write_model("old", 1.0), 0.5, classes)
    evaluation = str(place.evaluate(examples, new, old))

    document = metrics(Path(evaluation))
    assert document is not None
    assert decision_thresholds(document) == {"candidate": low, "baseline": 0.5}
    matrices = confusion_matrices(document, 2)
    for model, named in (("candidate", x > -2), ("baseline", x >= 0)):
        found = read_evaluation(evaluation, model, classes).metrics[()]
        tp, fp = w[named & (y == 1)].sum(), w[named & (y == 0)].sum()
        recall, precision = tp / w[y == 1].sum(), tp / (tp + fp)
        expected = {
            "recall": recall,
            "precision": precision,
            "f1_score": 2 * precision * recall / (precision + recall),
            "binary_accuracy": np.average(named == y, weights=w),
            "false_positives": fp,
        }
        assert {x: found[x] for x in expected} == pytest.approx(expected)
        above = w[(x > 0) & (y == 1)].sum() / w[y == 1].sum()
        assert found["at_half"] == pytest.approx(above), "TFMA's own, exclusive"
        assert matrices[model][:, 1].tolist() == pytest.approx([fp, tp])

    # Another positive class: nothing of the old model is comparable.
    other = _decides(place.write_model("other", 1.0), 0.5, ("1", "0"))
    alone = str(place.evaluate(examples, new, other))
    assert read_candidate(alone, classes).metrics[()]["recall"] == 1.0
    assert not read_evaluation(alone, "baseline", classes).metrics


@pytest.fixture(scope="module")
def regressions(evaluations, tmp_path_factory):
    """Examples of a regression whose right slope is 2, and a baseline of 2.2."""
    names = ("MeanAbsoluteError", "ExampleCount")
    place = evaluations(tmp_path_factory.mktemp("regressions") / "place", 0, names)
    rows = [{**row, "label": 2 * row["x"]} for row in _records()]
    return place, place.write_examples("examples", rows), place.write_model("b", 2.2)


@pytest.mark.parametrize(
    ("slope", "passed", "trial"),
    [(2.1, 1, None), (2.205, 1, None), (2.25, 0, None), (1.7, 0, None), (2.1, 1, 1)],
)
def test_an_error_may_rise_by_5_percent(regressions, tmp_path, slope, passed, trial):
    """A trial is judged, and not blessed."""
    from tfx.types import standard_artifacts

    from components import artifacts
    from components.model_verdict.component import Executor

    place, examples, baseline = regressions
    model = place.write_model(f"model {slope}", slope)
    found = place.evaluate(examples, model, baseline)
    change = {"direction": "lower_is_better", "relative": 0.05}
    threshold = {"metric": "mean_absolute_error", "change": change}
    settings = Settings.model_validate(
        {"thresholds": [threshold], "classes": [], "split": "test"}
    )
    inputs = place.inputs(examples, model, baseline)
    inputs["evaluation"] = artifact(standard_artifacts.ModelEvaluation, found)
    outputs = {
        "verdict": artifact(artifacts.ModelVerdict, tmp_path / "verdict"),
        "blessing": artifact(standard_artifacts.ModelBlessing, tmp_path / "blessing"),
    }
    given = {"settings": settings.model_dump_json(), "trial": trial}
    Executor().Do(inputs, outputs, given)
    is_blessed = passed and not trial
    assert (tmp_path / "blessing" / "BLESSED").exists() == is_blessed
    assert outputs["blessing"][0].get_int_custom_property("blessed") == is_blessed
    row, _ = Verdict.load(tmp_path / "verdict").rows
    error = np.mean([abs(row["x"]) for row in _records()])
    assert (row.check, row.passed) == ("mean_absolute_error change", passed)
    assert row.actual == pytest.approx(abs(slope - 2) * error, rel=1e-4)
    assert row.baseline == pytest.approx(0.2 * error, rel=1e-4)


_OWN_METRIC = """
import tensorflow as tf

class ShareOfFar(tf.keras.metrics.Mean):
    def __init__(self, limit=0.5, name="far", dtype=None):
        super().__init__(name, dtype)
        self.limit = limit

    def update_state(self, ids, predictions, sample_weight=None):
        error = tf.abs(predictions[:, 0] - tf.cast(ids[:, 0], tf.float32))
        return super().update_state(error > self.limit, sample_weight)

    def get_config(self):
        return {"limit": self.limit, "name": self.name}
"""


def test_a_metric_of_ones_own_is_summed_over_batches_and_bundles(
    evaluations, tmp_path, monkeypatch
):
    import tensorflow_model_analysis as tfma

    (tmp_path / "own_metrics.py").write_text(_OWN_METRIC)
    monkeypatch.syspath_prepend(str(tmp_path))
    own = {"class": "own_metrics:ShareOfFar", "params": {"limit": 0.6}}
    # With intervals TFMA evaluates in 20 parts, which it merges.
    place = evaluations(tmp_path / "place", 2, (own, "ExampleCount"), intervals=True)
    records = _records() * 50
    examples = place.write_examples("examples", records)
    evaluation = place.evaluate(examples, place.write_model("model", 1.0))

    errors = [abs(1 / (1 + math.exp(-row["x"])) - row["label"]) for row in records]
    result = tfma.load_eval_result(str(evaluation))
    for key in ((), (("region", "north"),)):
        value = result.get_metrics_for_slice(key)["share_of_far"]["boundedValue"]
        far = [
            error > 0.6
            for error, row in zip(errors, records, strict=True)
            if not key or row["region"] == b"north"
        ]
        assert value["value"] == pytest.approx(sum(far) / len(far))
