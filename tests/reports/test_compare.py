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
from sluice.record.run_record import DocumentRecord, NodeRecord, PushRecord, RunRecord
from sluice.record.verdict import Check, Verdict

pytestmark = pytest.mark.unit


def _run(record: RunRecord, content: Mapping[str, Any] = {}) -> RunData:
    """Returns a run with one artifact per kind of document."""
    record.documents = [DocumentRecord(kind, "Node", kind, "") for kind in content]
    documents: dict[str, dict[str, Any] | None] = {
        kind: {"node": "Node", "artifacts": [artifact]}
        for kind, artifact in content.items()
    }
    return RunData(Path(), record, _documents=documents)


def _record(run_id: str = "r1", **values: Any) -> RunRecord:
    return RunRecord(run_id, "digits", "2026-01-01T00:00:00+00:00", "sluice", **values)


def _numeric(name: str, mean: float | None, **values: Any) -> dict[str, Any]:
    numeric = {"zeros": 0, "nan": 0, "mean": mean, "std_dev": 2.0, "min": 0.0}
    numeric |= {"median": 1.0, "max": 9.0}
    return _feature(name, numeric=numeric, **values)


def _feature(name: str, **values: Any) -> dict[str, Any]:
    counts = {"present": 10, "missing": 0, "min_values": 1, "max_values": 1}
    kinds: dict[str, Any] = {"numeric": None, "string": None, "bytes": None}
    return {"name": name, "type": "FLOAT", **counts, **kinds, **values}


def _statistics(*features: dict[str, Any], examples: int = 10) -> dict[str, Any]:
    split = {"split": "train", "examples": examples, "features": list(features)}
    return {"statistics": {"splits": [split]}}


def _metrics(
    values: dict[str, Any], where: dict[str, Any] | None = None, **row: Any
) -> dict[str, Any]:
    about: dict[str, Any] = {
        "slice": where or {},
        "compared_with": None,
        "model": "candidate",
    }
    about |= {"output": "", "sub_key": {}, "aggregation": None, "change": False}
    return {**about, "metrics": values, **row}


def _evaluated(*rows: dict[str, Any], **record: Any) -> RunData:
    return _run(_record(**record), {"metrics": {"metrics": list(rows)}})


def _with_code(**code: str) -> RunRecord:
    parts = {"code": code, "files": {}, "properties": {"steps": len(code)}}
    return _record(nodes=[NodeRecord("Trainer", "Trainer", cache={"parts": parts})])


def test_a_run_compared_with_itself_differs_in_nothing():
    run = _evaluated(_metrics({"auc": 0.9, "lost": "NaN"}), config={"a": math.pi})
    found = compare(run, run)
    assert not any(
        (found.config, found.code, found.files, found.inputs, found.packages)
    )
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
    before, after = (
        _with_code(same="1", old="1", edited="1"),
        _with_code(same="1", new="1", edited="2"),
    )
    found = compare(_run(before), _run(after))
    assert found.code == (
        SourceChange("edited", "changed", ("Trainer",)),
        SourceChange("new", "new", ("Trainer",)),
        SourceChange("old", "gone", ("Trainer",)),
    )


def test_modules_of_a_node_that_one_run_did_not_reach_are_no_change():
    unreached = _record(nodes=[NodeRecord("Trainer", "Trainer")])
    assert compare(_run(_with_code(a="1")), _run(unreached)).code == ()


def test_a_pipeline_without_config_is_compared_by_its_exec_properties():
    runs = [_run(_with_code(a="1")), _run(_with_code(a="1", b="2"))]
    assert compare(*runs).config == (Change("Trainer.steps", 1, 2),)


def test_what_one_record_does_not_have_is_no_change():
    """As that of a run that failed before it read anything, or of an old version."""
    span = {"span": 3, "version": None, "date": None}
    facts: dict[str, Any] = {"config": {"a": 1}, "packages": {"tfx": "1"}}
    facts["gates"] = [Verdict("data", (Check("a", "b", "c", 1, 2, True),)).to_dict()]
    documents = {**_statistics(), "metrics": {"metrics": [_metrics({"auc": 0.9})]}}
    full = _run(_record(spans={"data": [span]}, **facts), documents)
    for found in (compare(full, _run(_record())), compare(_run(_record()), full)):
        assert not (found.config or found.packages or found.spans or found.examples)
        assert not (found.gates or found.metrics)


def test_digests_tell_which_input_differs():
    before = _record(digests={"data": "1", "code": "1"})
    after = _record(digests={"data": "2", "code": "1", "schema": "1"})
    assert compare(_run(before), _run(after)).inputs == ("data",)


def test_schemas_are_compared_by_feature():
    fare = {"name": "fare", "type": "FLOAT", "domain": {"max": 9}, "shape": [1]}
    gone = {"name": "gone", "type": "INT"}
    before = _run(_record(), {"schema": {"features": [fare, gone]}})
    other = {**fare, "domain": {"max": 5}}
    new = {"name": "new", "type": "BYTES"}
    after = _run(_record(), {"schema": {"features": [other, new]}})
    found = compare(before, after)
    assert found.schema == (
        Change("fare.domain.max", 9, 5),
        Change("gone", "INT", None),
        Change("new", None, "BYTES"),
    )
    assert summarize_changes(found) == [
        "schema: fare.domain.max 9 -> 5, gone INT -> none, new none -> BYTES"
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
    top = [{"value": "a", "count": 6.0}, {"value": "b", "count": 4.0}]
    words = _feature("word", string={"unique": 2, "top_values": top})
    other = _feature("word", string={"unique": 2, "top_values": top[1:]})
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
    before = _run(_record(), _statistics(_numeric("empty", None)))
    after = _run(_record(), _statistics(_numeric("empty", 1.0), _numeric("new", 1.0)))
    new, empty = compare(before, after).features
    assert (new.feature, new.shift) == ("new", math.inf)
    assert (empty.feature, empty.shift) == ("empty", 0.0)


def test_values_of_sensitive_features_are_not_compared():
    hidden = [{"value": None, "count": 6.0}]
    secret = _feature("name", string={"unique": 9, "top_values": hidden})
    other = _feature("name", string={"unique": 8, "top_values": hidden})
    before = _run(_record(), _statistics(secret))
    (found,) = compare(before, _run(_record(), _statistics(other))).features
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
    cash = {"payment_type": "Cash"}
    before = _evaluated(
        _metrics({"auc": 0.9, "loss": 0.5, "example_count": 10.0}),
        _metrics({"auc": 0.8}, cash),
    )
    after = _evaluated(
        _metrics({"auc": 0.95, "loss": 0.6, "example_count": 12.0}),
        _metrics({"auc": 0.8}, cash),
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
    counts = {"shape": [2], "values": [7, 0]}
    cash = {"payment_type": "Cash"}
    values = {"auc": 0.0, "accuracy": 1.0}
    run = _evaluated(_metrics({**values, "examples_per_class": counts}, cash))
    assert metrics(run) == {("payment_type: Cash", "accuracy"): 1.0}


def test_only_numbers_of_the_candidate_are_metrics():
    run = _evaluated(
        _metrics({"auc": 0.1}, model="baseline"),
        _metrics({"auc": 0.2}, change=True),
        _metrics({"auc": 0.3}, compared_with={}),
        _metrics({"auc": {"value": 0.4, "lower_bound": 0.3, "upper_bound": 0.5}}),
        _metrics({"recall": 0.5, "x": {"error": "none"}}, sub_key={"class_id": 3}),
    )
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
def test_direction_in_which_a_metric_improves(metric: str, expected: str | None):
    change = {"direction": "lower_is_better", "absolute": 0}
    thresholds = [
        {"metric": "mine", "change": change},
        {"metric": "bounded", "lower_bound": None, "upper_bound": 3},
        {"metric": "auc_pr", "lower_bound": 0.1, "upper_bound": 0.9},
    ]
    named = {"class": "SparseCategoricalCrossentropy", "name": "named"}
    config = {"evaluate": {"thresholds": thresholds, "metrics": [named]}}
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
def test_outcome_of_a_run(status: Any, push: Any, expected: str):
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
