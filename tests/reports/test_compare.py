"""Comparison of two runs: their values, the tables and a page."""

import math
from pathlib import Path

import pytest

from reports.compare import Change, compare, summarize_changes
from reports.diff_page import diff_tables, render_diff
from reports.metric_changes import metrics_by_slice
from reports.read_run import RunData
from reports.run_table import better, examples, metrics
from sluice.record.outcome import duration_s
from sluice.record.parts import DocumentRecord
from sluice.record.run_record import RunRecord
from tests.kit import protos
from tests.kit.protos import slice_metrics
from tests.kit.runs import a_check, a_gate

pytestmark = pytest.mark.unit

HOSTILE = "<script>alert(1)</script> | `x` [a](b) @team \u202e\n# h"
SPAN = {"span": 3, "version": 1, "date": None}


def _run(content=None, **values):
    """Returns a run with one document of each kind."""
    record = RunRecord("r1", "digits", "c", "2026-01-01T00:00:00+00:00", **values)
    record.documents = [DocumentRecord(kind, "Node", kind) for kind in content or {}]
    return RunData(Path(), record, _documents=dict(content or {}))


def _evaluated(*slices, **record):
    return _run({"metrics": protos.evaluation(*slices)}, **record)


def _statistics(*features, examples=10):
    splits = {"train": protos.split(*features, examples=examples)}
    privacy = {"sensitive": ["secret"]}
    return {"statistics": {"node": "S", "privacy": privacy, "splits": splits}}


def _lines(before, after):
    return summarize_changes(compare(before, after))


def test_a_run_compared_with_itself_differs_in_nothing(run_with):
    run = _evaluated(slice_metrics({"auc": 0.9, "lost": "NaN"}), config={"a": math.pi})
    found = compare(run, run)
    assert not any(found.changes.values()) and not found.features
    assert [item.outcome for item in found.metrics] == ["same", "same"]
    same = compare(run_with(), run_with())
    assert [table.id for table in diff_tables(same, all_metrics=False)] == ["runs"]


def test_what_one_record_does_not_have_is_no_change():
    """As that of a run that failed before it read anything."""
    documents = {
        **_statistics(),
        "metrics": protos.evaluation(slice_metrics({"a": 1.0})),
    }
    facts = {"config": {"a": 1}, "packages": {"tfx": "1"}, "spans": {"data": [SPAN]}}
    full = _run(documents, gates=[a_gate("data", a_check("x"))], **facts)
    assert _lines(full, _run()) == _lines(_run(), full) == []
    assert not any(compare(full, _run()).changes.values())


def test_digests_tell_what_differs_also_where_the_record_does_not_say_how():
    digests = ({"config": x, "data": x, "code": "1", "schema": None} for x in "12")
    before, after = (_run(digests=x) for x in digests)
    assert _lines(before, after) == ["digests: data"]


def test_only_measured_numbers_of_the_candidate_are_metrics():
    baseline = slice_metrics({"auc": 0.1}, "baseline")
    changed, crossed = slice_metrics({"auc": 0.2}), slice_metrics({"auc": 0.3})
    changed["metric_keys_and_values"][0]["key"]["is_diff"] = True
    crossed["cross_slice_key"] = {"comparison_slice_key": {}, "baseline_slice_key": {}}
    of_class = slice_metrics({"recall": 0.5, "x": {"unknown_type": {"error": "none"}}})
    for item in of_class["metric_keys_and_values"]:
        item["key"]["sub_key"] = {"class_id": 3}
    values = {"auc": 0.0, "accuracy": 1.0, "examples_per_class": [7, 0]}
    one_class = slice_metrics(values, payment_type="Cash")
    bounded = slice_metrics({"auc": (0.4, 0.3, 0.5)})
    run = _evaluated(baseline, changed, crossed, bounded, of_class, one_class)
    assert metrics(run) == {
        ("overall", "auc"): 0.4,
        ("overall", "recall (class_id 3)"): 0.5,
        ("payment_type: Cash", "accuracy"): 1.0,
    }


@pytest.mark.parametrize("task", ["classification", "multi_label"])
def test_a_mean_over_classes_needs_examples_of_each(task):
    """The AUC of the third is 0 for TFMA."""
    slices = []
    for region, auc, counts in (("north", 0.9, [7, 4, 2]), ("south", 0.6, [7, 4, 0])):
        found = slice_metrics({"auc": auc}, region=region)
        for item in found["metric_keys_and_values"]:
            item["key"]["aggregation_type"] = {"macro_average": True}
        found["metric_keys_and_values"] += slice_metrics(
            {"accuracy": 0.8, "examples_per_class": counts}
        )["metric_keys_and_values"]
        slices.append(found)
    config = {"label": {"feature": "label", "task": task}}
    shown = {
        where: {name: item.shown for name, item in of_slice.items()}
        for where, of_slice in metrics_by_slice({"metrics": slices}, config).items()
    }
    macro = "auc (macro_average)"
    assert shown["region: north"] == {macro: 0.9, "accuracy": 0.8}
    assert shown["region: south"] == {macro: "lacks a class", "accuracy": 0.8}


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("binary_accuracy", "higher"),
        ("mean_squared_error", "lower"),
        ("recall (class_id 3)", "higher"),
        ("example_count", None),
        ("mine", "lower"),
        ("named", "lower"),
        ("bounded", "lower"),
        # Found: a cap said that lower is better.
        ("auc", "higher"),
        ("capped", None),
    ],
)
def test_direction_in_which_a_metric_improves(metric, expected):
    change = {"direction": "lower_is_better", "absolute": 0}
    thresholds = [
        {"metric": "mine", "change": change},
        {"metric": "bounded", "lower_bound": None, "upper_bound": 3},
        {"metric": "auc", "upper_bound": 0.999},
        {"metric": "auc", "lower_bound": 0.0},
        {"metric": "capped", "upper_bound": 0.999},
        {"metric": "capped", "lower_bound": 0.0},
    ]
    named = {"class": "SparseCategoricalCrossentropy", "name": "named"}
    config = {"evaluate": {"thresholds": thresholds, "metrics": [named]}}
    assert better(metric, config) == expected


def test_values_are_no_markup(run_with):
    before, after = run_with(config={HOSTILE: 1}), run_with(config={HOSTILE: HOSTILE})
    found = compare(before, after)
    page = render_diff(found)
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page
    assert "\u202e" not in page


def test_long_lists_are_cut_and_values_shown_so_that_they_differ(run_with):
    sides = ({f"key{number}": side for number in range(60)} for side in (1, 2))
    found = compare(*(run_with(config=config) for config in sides))
    assert summarize_changes(found)[0].endswith("and 57 more")
    assert Change("a", 0.1234561, 0.1234562).texts == ("0.1234561", "0.1234562")
    assert str(Change("a", "x" * 91, None)) == f"a {'x' * 89}… → none"


def test_durations_are_without_pauses():
    ended = {"ended_at": "2026-01-01T00:01:30+00:00"}
    runs = [_run(**ended), _run(), _run(**ended, paused_s=60.0)]
    assert [duration_s(run.record) for run in runs] == [90.0, None, 30.0]


def test_examples_are_those_that_were_ingested_else_those_of_the_statistics():
    splits = {"train": 7}
    for content in (_statistics(examples=7), {"ingestion": {"splits": splits}}):
        assert examples(_run(content)) == {"train": 7}
