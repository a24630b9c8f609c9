"""Comparison of two runs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from reports.compare import Change, SourceChange, compare
from reports.read_run import RunData
from reports.run_values import better, duration_s, examples, metrics, outcome
from reports.summarize_changes import summarize_changes, value_texts
from sluice.record.parts import DocumentRecord, NodeRecord, PushRecord
from sluice.record.run_record import RunRecord
from sluice.record.verdict import Check, Verdict
from tests.kit import protos
from tests.kit.protos import slice_metrics as _metrics

pytestmark = pytest.mark.unit


def _run(record: RunRecord, content: Mapping[str, Any] = {}) -> RunData:
    """Returns a run with one document of each kind."""
    record.documents = [DocumentRecord(kind, "Node", kind) for kind in content]
    return RunData(Path(), record, _documents=dict(content))


def _record(run_id: str = "r1", **values: Any) -> RunRecord:
    return RunRecord(run_id, "digits", "sluice", "2026-01-01T00:00:00+00:00", **values)


def _numeric(name: str, mean: float) -> dict[str, Any]:
    stats: dict[str, Any] = {"mean": mean, "std_dev": 2.0, "median": 1.0, "max": 9.0}
    return protos.numeric(name, present=10, **stats)


def _statistics(*features: dict[str, Any], examples: int = 10) -> dict[str, Any]:
    splits = {"train": protos.split(*features, examples=examples)}
    privacy = {"sensitive": ["secret"]}
    return {"statistics": {"node": "S", "privacy": privacy, "splits": splits}}


def _evaluated(*slices: dict[str, Any], **record: Any) -> RunData:
    return _run(_record(**record), {"metrics": protos.evaluation(*slices)})


def _with_code(**code: str) -> RunData:
    executions = [{"node": "Trainer", "code": code}, {"node": "Importer"}]
    return _run(_record(), {"lineage": {"executions": executions}})


def test_a_run_compared_with_itself_differs_in_nothing():
    run = _evaluated(_metrics({"auc": 0.9, "lost": "NaN"}), config={"a": math.pi})
    found = compare(run, run)
    assert not any((found.config, found.code, found.inputs, found.packages))
    assert not any((found.spans, found.examples, found.features, found.gates))
    assert [item.metric for item in found.changed_metrics] == []


def test_config_values_are_compared_by_path():
    before = _record(config={"train": {"epochs": 3, "seed": 1}, "model": "cnn"})
    after = _record(config={"train": {"epochs": 5, "seed": 1}, "slices": [["a"]]})
    assert compare(_run(before), _run(after)).config == (
        Change("train.epochs", 3, 5),
        Change("model", "cnn", None),
        Change("slices[0]", None, ["a"]),
    )


def test_code_is_compared_by_the_modules_of_each_node():
    before = _with_code(same="1", old="1", edited="1")
    after = _with_code(same="1", new="1", edited="2")
    assert compare(before, after).code == (
        SourceChange("edited", "changed", ("Trainer",)),
        SourceChange("new", "new", ("Trainer",)),
        SourceChange("old", "gone", ("Trainer",)),
    )
    assert compare(before, _run(_record())).code == ()


def test_what_one_record_does_not_have_is_no_change():
    """As that of a run that failed before it read anything, or of an old version."""
    span = {"span": 3, "version": None, "date": None}
    facts: dict[str, Any] = {"config": {"a": 1}, "packages": {"tfx": "1"}}
    facts["gates"] = [Verdict("data", (Check("a", "b", "c", 1, 2, True),)).to_dict()]
    documents = {**_statistics(), "metrics": protos.evaluation(_metrics({"auc": 0.9}))}
    full = _run(_record(spans={"data": [span]}, **facts), documents)
    for found in (compare(full, _run(_record())), compare(_run(_record()), full)):
        assert not (found.config or found.packages or found.spans or found.examples)
        assert not (found.gates or found.metrics)


def test_digests_tell_which_input_differs():
    before = _record(digests={"data": "1", "code": "1"})
    after = _record(digests={"data": "2", "code": "1", "schema": "1"})
    assert compare(_run(before), _run(after)).inputs == ("data",)


def test_schemas_are_compared_by_feature():
    fare = {"name": "fare", "type": "FLOAT", "float_domain": {"max": 9}}
    gone = {"name": "gone", "type": "INT"}
    before = _run(_record(), {"schema": {"schema": {"feature": [fare, gone]}}})
    other = {**fare, "float_domain": {"max": 5}}
    new = {"name": "new", "type": "BYTES"}
    after = _run(_record(), {"schema": {"schema": {"feature": [other, new]}}})
    found = compare(before, after)
    assert found.schema == (
        Change("fare.float_domain.max", 9, 5),
        Change("gone", "INT", None),
        Change("new", None, "BYTES"),
    )
    assert summarize_changes(found) == [
        "schema: fare.float_domain.max 9 -> 5, gone INT -> none, new none -> BYTES"
    ]
    assert compare(before, _run(_record())).schema == ()


def test_spans_and_examples_of_the_data():
    span = {"span": 3, "version": 1, "date": None}
    before = _run(_record(spans={"data": [span]}), _statistics())
    later = _record(spans={"data": [span, {**span, "span": 4, "date": "2026-01-02"}]})
    found = compare(before, _run(later, _statistics(examples=30)))
    assert found.spans == (Change("data", ["3 v1"], ["3 v1", "4 v1 (2026-01-02)"]),)
    assert found.examples == (Change("train", 10, 30),)


def test_features_are_sorted_by_how_far_they_have_moved():
    words = protos.text("word", {"a": 6.0, "b": 4.0}, present=10)
    other = protos.text("word", {"b": 4.0}, present=10)
    other["string_stats"]["unique"] = "2"
    before = _run(
        _record(), _statistics(words, _numeric("fare", 1.0), _numeric("same", 1.0))
    )
    after = _run(
        _record(), _statistics(other, _numeric("fare", 4.0), _numeric("same", 1.0))
    )
    fare, word = compare(before, after).features
    assert (fare.feature, fare.shift) == ("fare", 1.5)
    assert fare.statistics == (Change("mean", 1.0, 4.0),)
    assert (word.feature, word.shift) == ("word", 0.6)
    assert word.statistics == (Change("top value", "a", "b"),)


def test_features_that_are_new_or_have_no_numbers():
    nothing = protos.numeric("empty", present=0, missing=10)
    before = _run(_record(), _statistics(nothing))
    after = _run(_record(), _statistics(_numeric("empty", 1.0), _numeric("new", 1.0)))
    new, empty = compare(before, after).features
    assert (new.feature, new.shift) == ("new", math.inf)
    assert (empty.feature, empty.shift) == ("empty", 1.0)


def test_values_of_sensitive_features_are_not_compared():
    one, other = (
        protos.feature("secret", "string_stats", "STRING", unique=unique)
        for unique in ("9", "8")
    )
    before, after = (_run(_record(), _statistics(x)) for x in (one, other))
    (found,) = compare(before, after).features
    assert (found.statistics, found.shift) == ((Change("unique", 9, 8),), 0.0)


def test_rows_of_verdicts_that_differ():
    good = Check("accuracy", "overall", ">= 0.9", None, 0.95, True)
    bad = replace(good, actual=0.85, passed=False)
    change = Check("accuracy", "overall", "absolute change >= 0", 0.9, 0.9, True)
    before = _record(gates=[Verdict("model", (good, change)).to_dict()])
    after = _record(gates=[Verdict("model", (bad, change)).to_dict()])
    (row,) = compare(_run(before), _run(after)).gates
    assert (row.gate, row.check, row.slice) == ("model", "accuracy", "overall")
    assert row.before and row.after
    assert (row.before["result"], row.after["result"]) == ("pass", "FAIL")
    assert row.after["value"] == 0.85


def test_metrics_of_each_slice_improve_in_their_own_direction():
    before = _evaluated(
        _metrics({"auc": 0.9, "loss": 0.5, "example_count": 10.0}),
        _metrics({"auc": 0.8}, payment_type="Cash"),
    )
    after = _evaluated(
        _metrics({"auc": 0.95, "loss": 0.6, "example_count": 12.0}),
        _metrics({"auc": 0.8}, payment_type="Cash"),
    )
    found = compare(before, after)
    outcomes = {(item.slice, item.metric): item.outcome for item in found.metrics}
    assert outcomes == {
        ("overall", "auc"): "better",
        ("overall", "loss"): "worse",
        ("overall", "example_count"): "differs",
        ("payment_type: Cash", "auc"): "same",
    }
    assert len(found.changed_metrics) == 3


def test_metrics_of_classes_are_left_out_where_there_is_only_one():
    values = {"auc": 0.0, "accuracy": 1.0, "examples_per_class": [7, 0]}
    run = _evaluated(_metrics(values, payment_type="Cash"))
    assert metrics(run) == {("payment_type: Cash", "accuracy"): 1.0}


def test_only_numbers_of_the_candidate_are_metrics():
    baseline = _metrics({"auc": 0.1}, "baseline")
    changed, crossed = _metrics({"auc": 0.2}), _metrics({"auc": 0.3})
    changed["metric_keys_and_values"][0]["key"]["is_diff"] = True
    crossed["cross_slice_key"] = {"comparison_slice_key": {}, "baseline_slice_key": {}}
    of_class = _metrics({"recall": 0.5, "x": {"unknown_type": {"error": "none"}}})
    for item in of_class["metric_keys_and_values"]:
        item["key"]["sub_key"] = {"class_id": 3}
    bounded = _metrics({"auc": (0.4, 0.3, 0.5)})
    run = _evaluated(baseline, changed, crossed, bounded, of_class)
    assert metrics(run) == {
        ("overall", "auc"): 0.4,
        ("overall", "recall (class_id 3)"): 0.5,
    }


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("binary_accuracy", "higher"),
        ("auc_pr", "higher"),
        ("mean_squared_error", "lower"),
        ("false_positives", "lower"),
        ("recall (class_id 3)", "higher"),
        ("example_count", None),
        ("mine", "lower"),
        ("named", "lower"),
        ("bounded", "lower"),
    ],
)
def test_direction_in_which_a_metric_improves(metric, expected):
    change = {"direction": "lower_is_better", "absolute": 0}
    thresholds = [
        {"metric": "mine", "change": change},
        {"metric": "bounded", "lower_bound": None, "upper_bound": 3},
        {"metric": "auc_pr", "lower_bound": 0.1, "upper_bound": 0.9},
    ]
    named = {"class": "SparseCategoricalCrossentropy", "name": "named"}
    area = {"class": "AUC", "name": "auc_pr"}
    config = {"evaluate": {"thresholds": thresholds, "metrics": [named, area]}}
    assert better(metric, config) == expected


def test_nodes_of_both_runs_with_state_and_time():
    before = _record(nodes=[NodeRecord("A", "A", "ran", 3.0), NodeRecord("B", "B")])
    after = _record(nodes=[NodeRecord("A", "A", "cached", 0.1)])
    times = compare(_run(before), _run(after)).times
    assert [(item.node, item.before_s, item.after_state) for item in times] == [
        ("A", 3.0, "cached"),
        ("B", None, None),
    ]


def test_changes_are_summarized_by_kind():
    span = {"span": 3, "version": None, "date": None}
    before = _evaluated(
        _metrics({"auc": 0.91, "loss": 0.51, "example_count": 10.0}),
        config={"a": 1, "b": 0.1234561, "c": "x" * 90, "d": None},
        spans={"data": [span]},
        digests={"schema": "1", "data": "1", "code": "1"},
    )
    after = _evaluated(
        _metrics({"auc": 0.92, "loss": 0.52, "example_count": 12.0}),
        config={"a": 12000, "b": 0.1234562, "c": "y", "d": True},
        spans={"data": [span, {**span, "span": 4}]},
        digests={"schema": "2", "data": "2", "code": "2"},
    )
    assert summarize_changes(compare(before, after)) == [
        "config: a 1 -> 12,000, b 0.1234561 -> 0.1234562, "
        f"c {'x' * 60}... -> y, and 1 more",
        "code: modules that no node of both runs has read",
        "schema: another content",
        "spans: data 3 -> 3, 4",
        "metrics: loss 0.51 -> 0.52 (worse), auc 0.91 -> 0.92 (better)",
    ]
    assert summarize_changes(compare(before, before)) == []


def test_long_values_are_shown_where_they_differ():
    texts = value_texts("x" * 90 + "1", "x" * 90 + "2")
    assert texts == ("..." + "x" * 30 + "1", "..." + "x" * 30 + "2")


def test_json_has_no_infinities():
    before = _run(_record(), _statistics(_numeric("a", 1.0)))
    found = compare(before, _run(_record(), _statistics(_numeric("b", 1.0))))
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert document["schema_version"] == 1
    assert document["features"][0]["shift"] == "Infinity"


@pytest.mark.parametrize(
    ("status", "push", "expected"),
    [
        ("succeeded", "pushed", "pushed"),
        ("succeeded", "not_reached", "not pushed"),
        ("up_to_date", "already_served", "up to date"),
        ("failed", "not_reached", "failed"),
        ("blocked", "blocked", "blocked (data gate)"),
    ],
)
def test_outcome_of_a_run(status, push, expected):
    gates = [{"gate": "data", "passed": False}, {"gate": "model", "passed": False}]
    record = _record(status=status, pushes=[PushRecord("", push)], gates=gates)
    assert outcome(record) == expected


def test_duration_of_a_run_that_has_not_ended_is_unknown():
    ended = _record(ended_at="2026-01-01T00:01:30+00:00")
    assert (duration_s(ended), duration_s(_record())) == (90.0, None)


def test_pauses_are_no_part_of_a_duration():
    ended = _record(ended_at="2026-01-01T00:01:30+00:00", paused_s=60.0)
    assert duration_s(ended) == 30.0
    running = _record(status="running", paused_s=60.0)
    now = datetime.fromisoformat("2026-01-01T00:02:00+00:00")
    assert (duration_s(running, now), duration_s(running)) == (60.0, None)
    killed = _record(status="interrupted", ended_at=None)
    assert duration_s(killed, now) is None


def test_examples_are_those_that_were_ingested_else_those_of_the_statistics():
    run = _run(_record(), _statistics(examples=7))
    assert examples(run) == {"train": 7}
    splits = {"train": {"records": 7, "shards": 1}}
    run = _run(_record(), {"ingestion": {"splits": splits}})
    assert examples(run) == {"train": 7}
