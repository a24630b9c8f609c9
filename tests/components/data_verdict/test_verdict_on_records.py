"""DataVerdict, DataGate and AcceptData on real records and TFDV's statistics."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from components.data_baselines import read_entry
from components.data_verdict.settings import Policy, Rule
from sluice.errors import DataError, ExitCode
from sluice.record.verdict import Check, Verdict

pytestmark = pytest.mark.tf

LARGEST = 2**63 - 1


def _ignoring(*kinds: str) -> Policy:
    return Policy(rules=tuple(Rule(action="ignore", anomaly=kind) for kind in kinds))


def _warnings(verdict: Verdict) -> list[Check]:
    return [row for row in verdict.rows if row.result == "warn"]


def _only(verdict: Verdict) -> Check:
    (row,) = verdict.failures
    return row


def _row(verdict: Verdict, check: str) -> Check:
    (row,) = [row for row in verdict.rows if row.check == check]
    return row


def _entry(bench: Any) -> Path:
    (folder,) = bench.baseline_store.iterdir()
    return folder


def test_good_data_passes_and_the_splits_are_compared(bench):
    verdict = bench.judge()
    assert verdict.passed and not _warnings(verdict)
    row = _row(verdict, "train against eval")
    assert (row.slice, row.baseline) == ("train", "split eval")
    assert row.actual == "features compared: 2"
    checks = {row.check for row in verdict.rows}
    assert "drift since the data accepted last" not in checks
    found = json.loads((bench.folder / "verdict" / "distances.json").read_text())
    (comparison,) = found["comparisons"]
    assert (comparison["check"], comparison["split"]) == ("split_drift", "train")
    limits = {item["feature"]: item["limit"] for item in comparison["features"]}
    assert limits == {"fare": 0.2, "pay": 0.1, "label": None}
    for item in comparison["features"]:
        assert 0 <= item["distance"] <= (item["limit"] or 1)


@pytest.mark.parametrize(
    ("values", "kind", "limit", "shown"),
    [
        ({"label": [7]}, "out_of_range", "0 to 1", "label 7"),
        ({"label": [LARGEST]}, "out_of_range", "0 to 1", f"label {LARGEST}"),
        ({"label": None}, "missing", "in all examples", "label missing"),
        ({"fare": [math.nan]}, "not_finite", "finite numbers", "fare nan"),
        ({"new one": [1]}, "new_feature", "a feature of the schema", "new one 1"),
    ],
)
def test_one_bad_record_is_named(bench, values, kind, limit, shown):
    verdict = bench.judge(bench.changed(17, **values), policy=_ignoring("split_drift"))
    row = _only(verdict)
    assert (row.kind, row.feature, row.slice) == (kind, *values, "train")
    assert row.limit == limit
    path = bench.folder / "train 0.tfrecord"
    assert row.examples == (f"{path}, record 17: {shown}",)
    assert f"{path}, record 17: {shown}" in bench.text()


FIXED = "presence { min_fraction: 1 } shape { dim { size: %d } }"
LABELS = {
    "one-hot": (f"INT int_domain {{ min: 0 max: 1 }} {FIXED % 3}", [0, 1, 0]),
    "one number": (f"FLOAT {FIXED % 1}", [1.5]),
    "two numbers": (f"FLOAT {FIXED % 2}", [1.5, 2.5]),
    "texts": ('BYTES domain: "pay"', [b"Cash", b"Card"]),
    "codes": ("INT int_domain { min: 7 max: 9 is_categorical: true }", [7, 9]),
}


@pytest.mark.parametrize(
    ("label", "bad", "kind", "limit", "shown"),
    [
        ("one-hot", [0, 1], "wrong_shape", "3 values", "2 values"),
        ("one-hot", [0, 2, 0], "out_of_range", "0 to 1", "2"),
        ("one number", [math.nan], "not_finite", "finite numbers", "nan"),
        ("two numbers", [1.5], "wrong_shape", "2 values", "1 value"),
        ("two numbers", [1.5, math.inf], "not_finite", "finite numbers", "inf"),
        ("texts", [b"Cash", b"Zed"], "new_value", "the domain's 3 values", "'Zed'"),
        ("texts", None, None, "", ""),
        ("codes", [7, 10], "out_of_range", "7 to 9", "10"),
        ("codes", None, None, "", ""),
    ],
)
def test_labels_of_each_task(bench, label, bad, kind, limit, shown):
    """A list of classes may be empty; all else is named, with its record."""
    declared, good = LABELS[label]
    head, _, _ = bench.schema.partition('feature {\n  name: "label"')
    domain = bench.schema[bench.schema.index("string_domain") :]
    schema = f'{head}feature {{ name: "label" type: {declared} }}\n{domain}'
    records = [{**record, "label": good} for record in bench.records()]
    del records[16]["label"]
    train = [*records[:16], {**records[16], "label": bad}, *records[17:]]
    if bad is None:
        train[16] = records[16]
    records[16] = records[0]
    verdict = bench.judge(train, records, schema=schema)
    if kind is None:
        assert verdict.passed
        return
    row = _only(verdict)
    assert (row.kind, row.feature, row.slice, row.limit) == (
        *(kind, "label", "train"),
        limit,
    )
    (example,) = row.examples
    assert example.endswith(f"record 17: label {shown}")


@pytest.mark.parametrize(
    ("domain", "value", "kind"),
    [
        (f"min: 0 max: {LARGEST}", LARGEST, None),
        (f"min: 0 max: {2**60}", LARGEST, "out_of_range"),
        (f"min: 0 max: {LARGEST - 1}", 2**62, None),
        (f"min: 0 max: {2**53}", 2**53 + 2, "out_of_range"),
        ("", LARGEST, None),
    ],
)
def test_integers_that_statistics_round(bench, domain, value, kind):
    schema = bench.schema.replace(
        "int_domain { min: 0 max: 1", f"int_domain {{ {domain}"
    )
    train = bench.changed(17, label=[value])
    verdict = bench.judge(train, schema=schema, policy=_ignoring("split_drift"))
    assert [row.kind for row in verdict.failures] == ([kind] if kind else [])


def test_a_range_is_as_it_was_before_single_precision(bench):
    domain = '"fare" type: FLOAT float_domain { max: 20 }'
    schema = bench.schema.replace('"fare" type: FLOAT', domain)
    train, policy = bench.changed(17, fare=[20.4268]), _ignoring("split_drift")
    row = _only(bench.judge(train, schema=schema, policy=policy))
    assert (row.limit, row.actual) == ("<= 20", "0 to 20.4268")


def test_what_is_not_finite_is_counted_also_where_it_passes(bench):
    records = bench.records()
    for number, value in ((3, math.nan), (17, math.nan), (30, math.inf)):
        records[number]["fare"] = [value]
    for number in (50, 51, 60):
        records[number]["fare"] = [-math.inf]
    counted = "2 NaN and 4 infinite"
    (row,) = (
        row
        for row in bench.judge(records, policy=_ignoring("not_finite")).rows
        if row.kind == "not_finite"
    )
    assert (row.result, row.actual) == ("ignored", counted)
    assert len(row.examples) == 0 and "not_finite, action: warn" in str(row.remedy)

    allowed = "float_domain { disallow_nan: false disallow_inf: false }"
    schema = bench.schema.replace("type: FLOAT", f"type: FLOAT {allowed}")
    verdict = bench.judge(records, schema=schema)
    assert verdict.passed
    row = _row(verdict, "feature 'fare'")
    assert (row.result, row.limit, row.actual) == ("pass", "any number", counted)

    half = schema.replace(" disallow_inf: false", "")
    assert _only(bench.judge(records, schema=half)).actual == counted


def test_a_wrong_shape_is_reported_even_with_missing_values(bench):
    """All that have the feature have two values: that they are as many says nothing."""
    train = [{**record, "fare": [1.0, 2.0]} for record in bench.records()]
    del train[0]["fare"]
    policy = _ignoring("split_drift", "not_compared", "missing")
    row = _only(bench.judge(train, policy=policy))
    assert (row.kind, row.feature) == ("wrong_shape", "fare")


def test_drift_against_the_data_that_was_accepted_last(bench):
    assert bench.judge(spans=(1,)).passed
    bench.accept()
    assert "-1-" in _entry(bench).name
    unchanged = bench.judge(bench.records(220), bench.records(180), spans=(2,))
    assert unchanged.passed
    assert [
        (row.slice, row.baseline)
        for row in unchanged.rows
        if row.check == "drift since the data accepted last"
    ] == [("train", "span 1"), ("eval", "span 1")]

    drifted = bench.records(cash=0.9)
    train, evaluation = bench.judge(drifted, drifted, spans=(2,)).failures
    assert (train.check, train.slice, train.kind) == (
        "drift since the data accepted last: 'pay'",
        "train",
        "drift",
    )
    assert evaluation.slice == "eval"
    assert (train.baseline, train.limit_text) == ("span 1", "L-infinity <= 0.1")
    assert train.actual == pytest.approx(0.4)
    assert train.why.endswith("maximum difference is: Cash")
    warn = Policy(rules=(Rule(action="warn", feature="pay", anomaly="drift"),))
    assert len(_warnings(bench.judge(drifted, drifted, spans=(2,), policy=warn))) == 2


def test_what_the_schema_does_not_limit_is_measured_and_not_judged(bench):
    schema = re.sub(r"  \w+_(comparator|constraints).*\n", "", bench.schema)
    assert bench.judge(spans=(1,), schema=schema).passed
    bench.accept()
    drifted = bench.records(cash=0.9)
    verdict = bench.judge(drifted, spans=(2,), schema=schema, sensitive=("pay",))
    assert verdict.passed and not _warnings(verdict)
    kinds = {row.check for row in verdict.rows}
    assert not kinds & {"drift since the data accepted last", "train against eval"}
    found = json.loads((bench.folder / "verdict" / "distances.json").read_text())
    pairs = [(x["check"], x["split"]) for x in found["comparisons"]]
    assert pairs == [("drift", "train"), ("drift", "eval"), ("split_drift", "train")]
    for item in (x for pair in found["comparisons"] for x in pair["features"]):
        assert item["limit"] is None
    first = max(found["comparisons"][0]["features"], key=lambda x: x["distance"])
    assert first["feature"] == "pay" and "Cash" not in bench.text()


TWO_LIMITS = (
    "infinity_norm { threshold: 0.1 } jensen_shannon_divergence { threshold: 0.9 }"
)


def test_of_two_limits_the_missed_one_is_reported(bench):
    schema = bench.schema.replace("infinity_norm { threshold: 0.1 }", TWO_LIMITS, 1)
    row = _only(bench.judge(bench.records(cash=0.9), schema=schema))
    assert (row.measure, row.limit) == ("L-infinity", 0.1)


def test_the_norm_of_integers_that_are_categories(bench):
    """Without the counts of its values TFDV measures no such distance, and passes."""
    other = [{**r, "label": [1]} for r in bench.records()]
    limit = "skew_comparator { jensen_shannon_divergence { threshold: 0.1 } }"
    norm = "drift_comparator { infinity_norm { threshold: 0.1 } }"
    schema = bench.schema.replace(limit, norm)
    assert bench.judge(schema=schema).passed
    row = _only(bench.judge(other, schema=schema))
    assert (row.feature, row.measure, row.actual) == ("label", "L-infinity", 0.5)


def test_skew_against_serving_requests(bench):
    served = [{"fare": r["fare"], "pay": r["pay"]} for r in bench.records()]
    verdict = bench.judge(serving=served)
    assert verdict.passed
    assert _row(verdict, "training-serving skew").baseline == "serving examples"

    skewed = [{"fare": r["fare"], "pay": r["pay"]} for r in bench.records(cash=0.9)]
    row = _only(bench.judge(serving=skewed))
    assert (row.kind, row.check, row.slice) == (
        "skew",
        "training-serving skew: 'pay'",
        "train",
    )
    broken = [{"fare": r["fare"], "pay": [b"Zed"]} for r in bench.records()]
    rows = bench.judge(serving=broken).failures
    assert ("new_value", "serving") in {(row.kind, row.slice) for row in rows}

    row = _only(bench.judge(serving=[]))
    assert (row.kind, row.slice, row.check) == (
        "count",
        "serving",
        "number of examples",
    )


@pytest.mark.parametrize("stage", ["ALPHA", "DEPRECATED", "PLANNED"])
def test_a_feature_that_is_not_in_production_is_not_judged(bench, stage):
    schema = bench.schema
    for kind in ("FLOAT", "BYTES"):
        schema = schema.replace(
            f"type: {kind}", f"type: {kind} lifecycle_stage: {stage}"
        )
    train = bench.records(cash=0.9)
    train[17]["fare"] = [math.nan]
    assert bench.judge(train, schema=schema).passed


def test_values_of_sensitive_features_are_in_no_file(bench):
    secret = "Jane Doe"
    sensitive = ("pay", "label", "extra")
    bench.judge(spans=(1,))
    bench.accept()
    drifted = [{**record, "pay": [secret.encode()]} for record in bench.records()]
    verdict = bench.judge(drifted, drifted, spans=(2,), sensitive=sensitive)
    assert {row.kind for row in verdict.failures} == {"drift"}
    assert secret not in bench.text()

    schema = bench.schema.replace('value: "Jane Doe"', "")
    train = [{**record, "label": [b"one"], "extra": [77_001]} for record in drifted]
    verdict = bench.judge(train, schema=schema, spans=(2,), sensitive=sensitive)
    kinds = {(row.kind, row.feature) for row in verdict.failures}
    expected = {("new_value", "pay"), ("wrong_type", "label"), ("new_feature", "extra")}
    assert expected <= kinds
    for value in (secret, "one'", '"one', "77001", "77,001"):
        assert value not in bench.text()
    assert 'record 1"' in bench.text()

    bad = bench.changed(17, label=[LARGEST])
    policy = _ignoring("split_drift", "drift")
    row = _only(bench.judge(bad, sensitive=sensitive, policy=policy))
    assert (row.limit, row.actual) == ("the schema's range", None)
    assert "9223372" not in bench.text() and "9.223" not in bench.text()


def test_the_gate_fails_with_check_reason_and_place(bench):
    from components.data_gate import Executor

    bench.judge(bench.changed(17, label=[7]))
    with pytest.raises(DataError) as failure:
        Executor().Do({"verdict": bench.inputs["verdict"]}, {}, {})
    assert failure.value.exit_code == ExitCode.DATA
    assert failure.value.examples == (
        "feature 'label' in train: unexpectedly large value: 7; "
        "at train 0.tfrecord, record 17: label 7",
    )
    assert "sluice schema diff NAME" in str(failure.value)
    assert "--accept-data" in str(failure.value)


def test_a_service_accepts_data_that_the_next_run_can_read(bench, tmp_path):
    """Found: the entry had no run id, so the next run skipped it as damaged."""
    from tfx.dsl.components.base.base_executor import BaseExecutor

    from components.accept_data import Executor

    # As TFX's container entry point makes it: without a run id.
    task = tmp_path / "root" / "1234" / "digits-run-1" / "AcceptData_-77"
    context = BaseExecutor.Context(
        extra_flags=[], unique_id=task.name, tmp_dir=str(task / ".temp")
    )
    bench.judge(spans=(1,))
    Executor(context).Do(bench.inputs, {}, bench.properties)
    assert read_entry(str(_entry(bench)))[0].run_id == "digits-run-1"


def test_a_distance_that_cannot_be_measured_is_an_anomaly(bench):
    policy = _ignoring("not_finite", "missing", "new_value", "invalid_text")
    nothing_finite = [{**record, "fare": [math.nan]} for record in bench.records()]
    row = _only(bench.judge(nothing_finite, policy=policy))
    assert (row.kind, row.feature) == ("not_compared", "fare")
    assert row.why.startswith("TFDV has measured no distance")

    without = [{"fare": r["fare"], "label": r["label"]} for r in bench.records()]
    row = _only(bench.judge(None, without, policy=policy))
    assert (row.kind, row.feature) == ("not_compared", "pay")
    assert bench.judge(without, without, policy=policy).passed
