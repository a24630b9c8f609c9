"""Documents and pages of regressions and of several labels, against numpy by record."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics

from reports.compare import compare
from reports.diff_page import render_diff
from reports.formats import number
from reports.read_run import RunData
from reports.run_page import render_run
from runners.documents import examples
from runners.documents.mistakes import MAX_MISTAKES, label_counts, mistakes
from runners.documents.residuals import residuals
from sluice.privacy import Privacy
from tests.kit import protos
from tests.kit.exported_models import example, export_model, write_examples
from tests.kit.page_text import check_golden, page_text
from tests.kit.runs import FIRST, SECOND, a_record, write_run
from tests.runners.documents.test_contents import RED

pytestmark = pytest.mark.tf
GOLDEN = Path(__file__).parent / "golden"
LABEL = Privacy(label="label")
CHANCE = np.random.default_rng(7)
# Two targets of 500 examples, in units of their own, and what is predicted of them.
TRUE = (CHANCE.lognormal(2.0, 1.0, (500, 2)) * [1, 1000]).astype(np.float32)
SCORES = (TRUE * CHANCE.normal(1.0, 0.2, (500, 2))).astype(np.float32)
# Three classes, of which nobody has the last; equal probabilities and those of 0.5.
CLASSES = ["a", "b", "c"]
LABELS = CHANCE.random((400, 3)) < [0.5, 0.02, 0.0]
SURE = (0.3 * LABELS + 0.7 * CHANCE.random((400, 3))).round(2).astype(np.float32)


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """Predicting ends after a second, which a busy machine may take for a batch."""
    monkeypatch.setattr(examples, "MAX_SECONDS", 60.0)


def _examples(folder, labels, scores, **others):
    labels, scores = labels.astype(float), scores.astype(float)
    rows = [
        example(label=label.tolist(), scores=given.tolist(), **others)
        for label, given in zip(labels, scores, strict=True)
    ]
    return write_examples(folder, train=[], eval=rows)


def _run(folder, run_id=FIRST, config=None, **documents):
    found = {"metrics": protos.evaluation(protos.slice_metrics({"example_count": 5.0}))}
    record = a_record(run_id, config=config or {})
    return RunData(write_run(folder, record, {**found, **documents}), record)


@pytest.fixture(scope="module")
def regression(tmp_path_factory):
    """A model of two targets that predicts the scores, the second halved."""
    folder = tmp_path_factory.mktemp("regression")
    return [str(export_model(folder, [1.0, 0.5], [], "regression"))]


def test_residuals_are_those_of_the_records(tmp_path, regression):
    labels = TRUE.copy()
    labels[3] = np.nan
    item = _examples(tmp_path, labels, SCORES)
    found: Any = residuals(regression, item, ["eval"], LABEL)
    assert json.loads(json.dumps(found)) == found
    assert (found["examples"], found["complete"], found["split"]) == (499, True, "eval")
    known = np.arange(500) != 3
    true, predicted = TRUE[known].astype(float), SCORES[known] * [1.0, 0.5]
    for i, target in enumerate(found["targets"]):
        errors = predicted[:, i] - true[:, i]
        assert target["mean"] == pytest.approx(errors.mean())
        ends = [target["quantiles"][i] for i in (0, 50, 100)]
        assert ends == pytest.approx([errors.min(), np.median(errors), errors.max()])
        # The fifth of ten groups by true value, as many examples in each.
        low, high = np.sort(true[:, i])[[200, 249]]
        group = (low <= true[:, i]) & (true[:, i] <= high)
        by_value = {name: values[4] for name, values in target["by_value"].items()}
        shares = {"low": 0.1, "median": 0.5, "high": 0.9}
        band = {x: np.quantile(predicted[group, i], y) for x, y in shares.items()}
        assert by_value == pytest.approx({"true": true[group, i].mean(), **band})
    relative = np.abs(predicted - true) / np.sqrt(
        ((predicted - true) ** 2).mean(axis=0)
    )
    worst = np.flatnonzero(known)[np.argsort(-relative.max(axis=1))]
    assert [x["record"] - 1 for x in found["largest"]] == worst[:MAX_MISTAKES].tolist()
    assert found["largest"][0]["true"] == TRUE[worst[0]].tolist()
    first = SCORES[worst[0]] * [1.0, 0.5]
    assert found["largest"][0]["predicted"] == pytest.approx(first)
    named = {"label": {"targets": ["price", "days"]}}
    found["privacy"] = asdict(LABEL)
    text = page_text(render_run(_run(tmp_path / "runs", config=named, residuals=found)))
    residuals_of, _, largest = text.partition("\nThe largest errors")
    assert residuals_of.index("\nprice\n") < residuals_of.index("\ndays\n")
    price, days = map(number, TRUE[worst[0]].tolist())
    assert f"price {price}, days {days}" in largest


def test_residuals_are_weighted(tmp_path, single):
    """Twice the weight is twice the example; weight 0 is none."""
    weights = np.array([0.0, 1.0, 2.0, 4.0, 1.0] * 20)
    true, scores = TRUE[:100, :1], SCORES[:100, :1].astype(float)
    rows = [
        example(label=float(y), scores=float(x), w=float(w))
        for (y,), (x,), w in zip(true, scores, weights, strict=True)
    ]
    item = write_examples(tmp_path, train=[], eval=rows)
    weighted = Privacy(label="label", weight="w")
    found: Any = residuals(single, item, ["eval"], weighted)
    errors = np.repeat(scores - true, weights.astype(int))
    (target,) = found["targets"]
    assert found["examples"] == 100 and len(found["largest"]) == MAX_MISTAKES
    median, spread = target["quantiles"][50], errors.std()
    assert target["mean"] == pytest.approx(errors.mean(), abs=1e-3 * spread)
    assert median == pytest.approx(np.median(errors), abs=0.05 * spread)
    unweighted: Any = residuals(single, item, ["eval"], LABEL)
    assert abs(unweighted["targets"][0]["mean"] - errors.mean()) > 0.01 * spread


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    """A regression of one target."""
    folder = tmp_path_factory.mktemp("single")
    return [str(export_model(folder, [1.0], [], "regression"))]


@pytest.mark.parametrize(
    ("privacy", "targets", "largest"),
    [
        (Privacy(private=True, label="label"), 1, 0),
        (Privacy(sensitive=["label"], label="label"), 0, 0),
        (Privacy(sensitive=["town"], label="label"), 1, MAX_MISTAKES),
    ],
)
def test_residuals_that_may_not_be_shown(tmp_path, single, privacy, targets, largest):
    item = _examples(tmp_path, TRUE[:, :1], SCORES[:, :1], town=b"Ulm", image=RED)
    found: Any = residuals(single, item, ["eval"], privacy)
    assert (len(found["targets"]), len(found["largest"])) == (targets, largest)
    assert "Ulm" not in json.dumps(found)
    page = render_run(
        _run(tmp_path / "runs", residuals={**found, "privacy": asdict(privacy)})
    )
    assert ("Predictions by true value" in page) == bool(targets)
    assert ("The largest errors" in page) == bool(largest)


def test_a_regression_has_no_mistakes_and_may_have_no_labels(tmp_path, single):
    item = _examples(tmp_path, TRUE[:, :1], SCORES[:, :1])
    assert mistakes(single, item, ["eval"], LABEL) is None
    none = str(write_examples(tmp_path / "none", train=[], eval=[]).uri)
    assert residuals([none], item, ["eval"], LABEL) is None
    unlabelled = [example(scores=[1.0])]
    item = write_examples(tmp_path / "unlabelled", train=[], eval=unlabelled)
    found: Any = residuals(single, item, ["eval"], LABEL)
    assert (found["examples"], found["targets"], found["largest"]) == (0, [], [])
    assert "0 predictions on eval" in render_run(
        _run(tmp_path / "runs", residuals=found)
    )


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """A model of several labels, and a baseline that never names the first class."""
    folder = tmp_path_factory.mktemp("labelled")
    exports = {"candidate": [1.0, 1.0, 1.0], "baseline": [0.1, 1.0, 1.0]}
    return [
        str(export_model(folder / name, weights, CLASSES, "multi_label"))
        for name, weights in exports.items()
    ]


@pytest.mark.parametrize(
    "weights", [np.ones(400, int), CHANCE.choice([0, 0.5, 3], 400)]
)
def test_classes_are_counted_as_scikit_learn_does(weights):
    found = label_counts(CLASSES, [*zip(LABELS, SURE, weights, strict=True)])
    given = {"sample_weight": weights}
    for i, item in enumerate(found[:2]):
        true, sure = LABELS[:, i], SURE[:, i]
        assert item["class"] == CLASSES[i]
        assert item["positives"] == pytest.approx(weights[true].sum())
        assert item["auc"] == pytest.approx(metrics.roc_auc_score(true, sure, **given))
        counted = metrics.confusion_matrix(true, sure >= 0.5, **given)
        (_, fp), (_, tp) = counted.tolist()
        assert item["served"] == pytest.approx({"tp": tp, "fp": fp})
    assert found[2]["auc"] is None
    (all_same,) = label_counts(["a"], [(np.ones(1), np.ones(1), 1)] * 3)
    assert (all_same["auc"], all_same["served"]["tp"]) == (None, 3)


def test_the_page_of_several_labels(tmp_path, labelled):
    item = _examples(tmp_path, LABELS, SURE, town=b"Ulm")
    found: Any = mistakes(labelled, item, ["eval"], LABEL)
    named, before = SURE >= 0.5, SURE * np.array([0.1, 1, 1], np.float32) >= 0.5
    wrong = (named != LABELS).any(axis=1)
    worst = (named != LABELS).sum(axis=1).max()
    assert (found["examples"], found["wrong"]) == (400, wrong.sum())
    first = found["mistakes"][0]
    at = first["record"] - 1
    assert (named[at] != LABELS[at]).sum() == worst
    run = _run(tmp_path / "runs", mistakes=found)
    model = page_text(render_run(run)).partition("\n## Model\n")[2]
    check_golden(GOLDEN / "several_labels.txt", model.partition("\n## Data\n")[0])
    right = [(x == LABELS).all(axis=1) for x in (named, before)]
    flips = {"newly_wrong": ~right[0] & right[1], "newly_right": right[0] & ~right[1]}
    assert {name: found["flips"][name] for name in flips} == {
        name: which.sum() for name, which in flips.items()
    }


def test_most_wrong_classes_come_first_then_the_surest(tmp_path, labelled):
    rows = {
        "right": ([1, 0, 0], [0.9, 0.1, 0.1]),
        "unsure": ([1, 0, 0], [0.9, 0.6, 0.1]),
        "missed": ([1, 0, 0], [0.2, 0.1, 0.1]),
        "sure": ([1, 0, 0], [0.9, 0.9, 0.1]),
        "two": ([1, 0, 0], [0.4, 0.6, 0.1]),
    }
    item = _examples(tmp_path, *map(np.array, zip(*rows.values(), strict=True)))
    found: Any = mistakes(labelled[:1], item, ["eval"], LABEL)
    names = [[*rows][x["record"] - 1] for x in found["mistakes"]]
    assert names == ["two", "sure", "missed", "unsure"]
    two, _, missed, _ = found["mistakes"]
    assert (two["true"], two["predicted"], missed["predicted"]) == ("a", "b", "none")
    assert two["probabilities"] == pytest.approx({"a": 0.4, "b": 0.6})


def test_runs_of_both_tasks_are_compared(tmp_path, labelled, single):
    """Several labels are compared by example, a regression not at all."""
    item = _examples(tmp_path / "a", LABELS, SURE)
    new, old = (mistakes([uri], item, ["eval"], LABEL) for uri in labelled)
    item = _examples(tmp_path / "b", TRUE[:, :1], SCORES[:, :1])
    regression = residuals(single[:1], item, ["eval"], LABEL)
    before = _run(tmp_path / "old", mistakes=old)
    after = _run(tmp_path / "new", SECOND, mistakes=new)
    other = _run(tmp_path / "other", SECOND, residuals=regression)
    found = compare(before, after).flips
    right = [
        (x >= 0.5) == LABELS for x in (SURE, SURE * np.array([0.1, 1, 1], np.float32))
    ]
    only = right[0].all(axis=1) & ~right[1].all(axis=1)
    assert found and found.newly_right == only.sum()
    assert compare(before, other).flips is None and compare(other, before).flips is None
    assert render_diff(compare(before, after)) and render_diff(compare(other, other))
