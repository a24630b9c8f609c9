"""The section Model: metrics per slice, confusion, curves, thresholds, mistakes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from reports.read_run import RunData
from reports.run_page import render_run
from reports.sections.model import build

pytestmark = pytest.mark.unit

RunWith = Callable[..., RunData]
HOSTILE = "</td><script>alert(1)</script>\"'&\u202e"
PNG = "data:image/png;base64,AAAA"


def row(
    metrics: dict[str, Any],
    model: str = "candidate",
    counts: Sequence[int] = (),
    **changes: Any,
) -> dict[str, Any]:
    values = {**metrics}
    if counts:
        values["examples_per_class"] = {"shape": [len(counts)], "values": counts}
    return {
        "slice": {},
        "compared_with": None,
        "model": model,
        "output": "",
        "sub_key": {},
        "example_weighted": False,
        "aggregation": None,
        "change": False,
        "metrics": values,
        **changes,
    }


def evaluation(*rows: dict[str, Any], plots: Sequence[Any] = ()) -> dict[str, Any]:
    return {
        "metrics": list(rows),
        "metrics_left_out": 0,
        "plots": list(plots),
        "plots_left_out": 0,
    }


def histogram(negatives: dict[int, int], positives: dict[int, int]) -> dict[str, Any]:
    rows = [[found.get(i, 0) for i in range(100)] for found in (negatives, positives)]
    return {"shape": [2, 100], "values": rows[0] + rows[1]}


def confusion(counts: dict[tuple[int, int], float], **changes: Any) -> dict[str, Any]:
    return {
        "slice": {},
        "compared_with": None,
        "model": "candidate",
        "output": "",
        "sub_key": {},
        "example_weighted": False,
        "name": "",
        "kind": "multi_class_confusion_matrix_at_thresholds",
        "columns": {
            "threshold": [0.0] * len(counts),
            "actual_class_id": [actual for actual, _ in counts],
            "predicted_class_id": [predicted for _, predicted in counts],
            "num_weighted_examples": list(counts.values()),
        },
        **changes,
    }


def model_gate(*rows: tuple[str, str, bool]) -> dict[str, Any]:
    return {
        "gate": "model",
        "passed": all(passed for _, _, passed in rows),
        "override": None,
        "rows": [
            {
                "check": check,
                "slice": "overall",
                "limit": limit,
                "baseline": None,
                "actual": 0.5,
                "passed": passed,
                "why": "",
                "severity": None,
                "policy": None,
                "kind": None,
                "feature": None,
                "examples": [],
            }
            for check, limit, passed in rows
        ],
    }


def column(table: Any, label: str) -> list[Any]:
    index = [item.label for item in table.columns].index(label)
    return [found[index] for found in table.rows]


def test_nothing_without_an_evaluation(run_with: RunWith) -> None:
    assert build(run_with()) is None


def test_metrics_with_interval_baseline_and_limit(run_with: RunWith) -> None:
    with_interval = {"value": 0.9, "lower_bound": 0.8, "upper_bound": 0.95}
    run = run_with(
        {
            "metrics": evaluation(
                row({"auc": 0.8, "loss": 0.5}, "baseline"),
                row({"auc": with_interval, "loss": "NaN", "odd": {"error": "no"}}),
                row({"auc": 0.1}, change=True),
            )
        },
        gates=[
            model_gate(
                ("auc", ">= 0.7", True), ("auc change", "absolute >= -0.1", False)
            )
        ],
    )
    view = build(run)
    assert view is not None and str(view.mark) == "not passed"
    table = view.evaluations[0].overall
    assert column(table, "Metric") == ["auc", "loss", "odd"]
    assert column(table, "Value") == [0.9, "NaN", "no"]
    assert column(table, "Interval") == ["0.8000 to 0.9500", None, None]
    assert column(table, "Baseline") == [0.8, 0.5, None]
    assert column(table, "Change") == [pytest.approx(0.1), None, None]
    assert column(table, "Limit") == ["≥ 0.7 and change ≥ -0.1", None, None]
    assert list(map(str, column(table, "Result"))) == ["fail", "None", "None"]
    assert view.evaluations[0].slices is None


def test_slices_are_worst_first_by_the_metric_of_the_gate(run_with: RunWith) -> None:
    def of(name: str, auc: float, counts: Sequence[int] = (5, 5)) -> dict[str, Any]:
        return row({"loss": 0.1, "auc": auc}, counts=counts, slice={"payment": name})

    run = run_with(
        {
            "metrics": evaluation(
                row({"loss": 0.1, "auc": 0.9}, counts=(9, 9)),
                of("Cash", 0.8),
                of("Card", 0.6),
                of("None", 0.0, counts=(7, 0)),
            )
        },
        gates=[model_gate(("auc", ">= 0.7", True))],
    )
    view = build(run)
    assert view is not None
    found = view.evaluations[0]
    assert found.slices is not None
    names = ["payment: Card", "payment: Cash", "payment: None"]
    assert column(found.slices, "Slice") == names
    assert column(found.slices, "auc") == [0.6, 0.8, "one class"]
    assert found.order == "Worst auc first."


def test_with_a_baseline_the_largest_loss_comes_first(run_with: RunWith) -> None:
    rows = [row({"loss": 1.0}), row({"loss": 1.0}, "baseline")]
    for name, before, after in (("a", 0.5, 0.4), ("b", 0.2, 0.3), ("c", 0.9, 0.95)):
        rows.append(row({"loss": before}, "baseline", slice={"s": name}))
        rows.append(row({"loss": after}, slice={"s": name}))
    view = build(run_with({"metrics": evaluation(*rows)}))
    assert view is not None and view.evaluations[0].slices is not None
    assert column(view.evaluations[0].slices, "Slice") == ["s: b", "s: c", "s: a"]
    assert column(view.evaluations[0].slices, "Change") == [
        pytest.approx(value) for value in (0.1, 0.05, -0.1)
    ]
    assert view.evaluations[0].order == "Worst first, by the change of loss."


def test_two_classes_have_curves_and_thresholds(run_with: RunWith) -> None:
    counts = histogram({10: 60, 60: 20}, {30: 5, 90: 15})
    run = run_with(
        {"metrics": evaluation(row({"prediction_histogram": counts}, counts=(80, 20)))},
        config={"label": {"classes": [0, "tip"]}},
    )
    view = build(run)
    assert view is not None
    found = view.evaluations[0].classification
    assert found is not None and found.thresholds is not None
    titles = [title for title, _ in found.charts]
    assert titles[:2] == ["ROC", "Precision and recall"]
    assert titles[2].startswith("Calibration")
    shown = found.thresholds
    assert shown.positive == "tip"
    for threshold, expected in {
        0.0: (20, 80, 0, 0),
        0.3: (20, 20, 60, 0),
        0.31: (15, 20, 60, 5),
        0.6: (15, 20, 60, 5),
        0.61: (15, 0, 80, 5),
        1.0: (0, 0, 80, 20),
    }.items():
        found_at = shown.counts
        i = found_at.thresholds.index(threshold)
        columns = (found_at.tp, found_at.fp, found_at.tn, found_at.fn)
        assert expected == tuple(values[i] for values in columns)
    assert found.matrix is not None
    assert [(name, n) for name, n, _ in found.matrix.rows] == [("0", 80), ("tip", 20)]
    assert [[n for n, _, _ in cells] for _, _, cells in found.matrix.rows] == [
        [60, 20],
        [5, 15],
    ]
    calibration = str(found.charts[2][1])
    # At least ten examples each: the mean probability, and the share of positive ones.
    for at, share in (("0.1050", "0"), ("0.5450", "0.2000"), ("0.9050", "1")):
        assert f"candidate: {share} at {at}, of " in calibration
    radii = re.findall(r'r="([\d.]+)"><title>', calibration)
    assert radii == ["6", "4.4", "3.8"], "60, 25 and 15 examples"
    assert 'data-thresholds="0.0 0.01 ' in render_run(run) and not run.notices


def test_a_few_classes_have_a_confusion_matrix(run_with: RunWith) -> None:
    counts = {(0, 0): 8.0, (0, 1): 2.0, (1, 1): 5.0, (2, 0): 1.0, (2, 2): 3.0}
    before = {(0, 0): 10.0, (1, 1): 5.0, (2, 2): 4.0}
    plots = [confusion(before, model="baseline"), confusion(counts)]
    run = run_with({"metrics": evaluation(row({}, counts=(10, 5, 4)), plots=plots)})
    view = build(run)
    assert view is not None
    found = view.evaluations[0].classification
    assert found is not None and found.matrix is not None and found.classes is not None
    name, examples, cells = found.matrix.rows[0]
    assert (name, examples) == ("0", 10)
    assert cells == [(8, "80 %", 7), (2, "20 %", 2), (0, "0 %", 0)]
    assert column(found.classes, "Class") == ["1", "0", "2"]
    assert column(found.classes, "F1") == [
        pytest.approx(value) for value in (10 / 12, 16 / 19, 6 / 7)
    ]
    assert column(found.classes, "Baseline F1") == [1.0, 1.0, 1.0]
    assert found.thresholds is None


def test_many_classes_have_the_pairs_that_are_confused_most(run_with: RunWith) -> None:
    counts = {(i, i): 10.0 for i in range(30)} | {(3, 4): 5.0, (7, 9): 6.0}
    run = run_with(
        {"metrics": evaluation(row({}, counts=[10] * 30), plots=[confusion(counts)])}
    )
    view = build(run)
    assert view is not None
    found = view.evaluations[0].classification
    assert found is not None and found.matrix is None and found.pairs is not None
    assert found.pairs.rows == [("7", "9", 6.0, 6 / 16), ("3", "4", 5.0, 5 / 15)]


def test_plots_of_a_config_are_drawn(run_with: RunWith) -> None:
    columns = {
        "threshold": [0.0, 0.5, 1.0],
        "true_positives": [4.0, 3.0, 0.0],
        "false_positives": [4.0, 1.0, 0.0],
        "true_negatives": [0.0, 3.0, 4.0],
        "false_negatives": [0.0, 1.0, 4.0],
    }
    buckets = {
        "num_weighted_examples": [4.0, 0.0],
        "total_weighted_label": [1.0, 0.0],
        "total_weighted_refined_prediction": [0.8, 0.0],
    }
    at_thresholds = confusion({}, kind="confusion_matrix_at_thresholds")
    at_thresholds |= {"columns": columns, "sub_key": {"class_id": 3}}
    calibration = confusion({}, kind="calibration_histogram_buckets") | {
        "columns": buckets
    }
    run = run_with(
        {"metrics": evaluation(row({"auc": 0.5}), plots=[at_thresholds, calibration])}
    )
    view = build(run)
    assert view is not None
    found = view.evaluations[0].classification
    assert found is not None
    charts = dict(found.charts)
    assert list(charts) == [
        "ROC, class id 3",
        "Precision and recall, class id 3",
        "Calibration, candidate",
    ]
    assert "0.7500 at 0.2500" in charts["ROC, class id 3"]
    assert "0.2500 at 0.2000" in charts["Calibration, candidate"]


def mistakes(found: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    return {
        "private": False,
        "limits": {"examples": 2000, "seconds": 1.0, "mistakes": 24},
        "split": "test",
        "label": "label",
        "signature": "serving_default",
        "classes": ["3", "8"],
        "examples": 300,
        "complete": True,
        "wrong": 6,
        "withheld": [],
        "mistakes": found,
        **changes,
    }


def mistake(**changes: Any) -> dict[str, Any]:
    return {
        "file": "test-00000",
        "record": 7,
        "true": "8",
        "predicted": "3",
        "probability": 0.97,
        "true_probability": 0.02,
        "images": [],
        "values": {"fare": 12.5, "company": HOSTILE, "tags": ["a", "b"], "none": None},
        "values_left_out": 0,
        **changes,
    }


def test_mistakes_are_pictures_where_there_are_images(run_with: RunWith) -> None:
    image = {"feature": "image", "width": 8, "height": 8, "format": "png", "data": PNG}
    run = run_with(
        {
            "metrics": evaluation(row({"accuracy": 0.98})),
            "mistakes": mistakes([mistake(images=[image])], complete=False),
        }
    )
    view = build(run)
    assert view is not None
    (found,) = view.mistakes
    assert found.summary == "6 of 300 predictions on test were wrong (2 %)."
    assert found.bound.startswith("Only the first 300 examples were predicted")
    (shown,) = found.pictures
    assert (shown.true, shown.predicted, shown.probability) == ("8", "3", "97 %")
    assert found.table is None
    assert f'src="{PNG}"' in render_run(run) and not run.notices


def test_mistakes_are_rows_of_other_features(run_with: RunWith) -> None:
    run = run_with(
        {
            "metrics": evaluation(row({"accuracy": 0.98})),
            "mistakes": mistakes([mistake()], withheld=["name"]),
        }
    )
    view = build(run)
    assert view is not None
    table = view.mistakes[0].table
    assert table is not None
    assert table.rows[0][:5] == ["8", "3", 0.97, 0.02, "12.50"]
    assert table.rows[0][6:] == ["a, b", None, "test-00000, record 7"]
    page = render_run(run)
    assert "<script>alert" not in page and "Sensitive features are withheld" in page


def test_a_private_run_shows_no_examples(run_with: RunWith) -> None:
    run = run_with(
        {
            "metrics": evaluation(row({"accuracy": 0.98})),
            "mistakes": mistakes([], private=True),
        }
    )
    assert "no examples are shown" in render_run(run)


def test_5000_slices_are_bounded(run_with: RunWith) -> None:
    rows = [row({"auc": 0.9, "loss": 0.1}, counts=(500, 500))]
    rows += [
        row({"auc": i / 5000, "loss": 0.1}, counts=(5, 5), slice={HOSTILE: f"v{i}"})
        for i in range(4999)
    ]
    run = run_with({"metrics": {**evaluation(*rows), "metrics_left_out": 12}})
    started_s = time.monotonic()
    page = render_run(run)
    assert not run.notices
    assert time.monotonic() - started_s < 30
    assert len(page) < 10_000_000
    assert "12 more rows of metrics" in page
    assert "<script>alert" not in page and "\u202e" not in page
