"""DataVerdict on real records: failures, examples, withheld values."""

from __future__ import annotations

import json
import math

import pytest

from components.accept_data.data_baselines import RECORD_FILE
from components.data_verdict.policy import Policy, Rule
from runners.documents.protos import baseline_statistics
from sluice.record.verdict import Check, Verdict

pytestmark = pytest.mark.tf


def _only(verdict: Verdict) -> Check:
    (row,) = verdict.failures
    return row


def _row(verdict: Verdict, check: str) -> Check:
    (row,) = [row for row in verdict.rows if row.check == check]
    return row


def test_good_data_passes_and_the_splits_are_compared(bench):
    verdict = bench.judge()
    assert verdict.passed and not verdict.warnings
    row = _row(verdict, "train against eval")
    assert (row.slice, row.baseline) == ("train", "split eval")
    assert row.actual == "2 features compared"
    assert "is closest to its limit" in row.why
    assert "drift since the data accepted last" not in {
        row.check for row in verdict.rows
    }
    found = json.loads((bench.folder / "verdict" / "distances.json").read_text())
    (comparison,) = found["comparisons"]
    assert (comparison["check"], comparison["split"]) == ("split_drift", "train")
    measured = comparison["features"]
    assert {item["feature"] for item in measured} == {"fare", "pay"}
    shares = [item["distance"] / item["limit"] for item in measured]
    assert shares == sorted(shares, reverse=True) and shares[0] <= 1
    assert f"{measured[0]['feature']!r} is closest to its limit" in row.why


@pytest.mark.parametrize(
    ("values", "kind", "feature", "shown"),
    [
        ({"label": [7]}, "out_of_range", "label", "label 7"),
        ({"label": None}, "missing", "label", "label missing"),
        ({"pay": [b"Zed"]}, "new_value", "pay", "pay 'Zed'"),
        ({"fare": [math.nan]}, "not_finite", "fare", "fare nan"),
        ({"fare": [math.inf]}, "not_finite", "fare", "fare inf"),
        ({"fare": [1.0, 2.0]}, "wrong_shape", "fare", "fare 2 values"),
        ({"new one": [1]}, "new_feature", "new one", "new one 1"),
    ],
)
def test_one_bad_record_is_named(bench, values, kind, feature, shown):
    rules = (Rule(action="ignore", anomaly="split_drift"),)
    verdict = bench.judge(bench.changed(17, **values), policy=Policy(rules=rules))
    row = _only(verdict)
    assert (row.kind, row.feature, row.slice) == (kind, feature, "train")
    path = bench.folder / "train 0.tfrecord"
    assert row.examples == (f"{path}, record 17: {shown}",)
    assert f"{path}, record 17: {shown}" in bench.text()


@pytest.mark.parametrize(
    ("domain", "passed"), [("", False), ("float_domain { disallow_nan: false }", True)]
)
def test_nan_fails_unless_the_schema_allows_it(bench, domain, passed):
    schema = bench.schema.replace("type: FLOAT", f"type: FLOAT {domain}")
    verdict = bench.judge(bench.changed(17, fare=[math.nan]), schema=schema)
    assert verdict.passed == passed


def test_a_label_of_another_type_is_one_row(bench):
    train = [{**record, "label": [b"one"]} for record in bench.records()]
    row = _only(bench.judge(train))
    assert (row.kind, row.check) == ("wrong_type", "feature 'label'")
    assert "Expected data of type: INT but got STRING" in row.why
    assert len(row.examples) == 5
    assert row.examples[4].endswith("record 5: label bytes_list 'one'")


def test_a_feature_that_is_missing_everywhere(bench):
    train = [{"pay": r["pay"], "label": r["label"]} for r in bench.records()]
    rows = bench.judge(train).failures
    assert [(row.kind, row.feature) for row in rows] == [
        ("missing", "fare"),
        ("not_compared", "fare"),
    ]
    assert len(rows[0].examples) == 5


def test_drift_against_the_data_that_was_accepted_last(bench):
    assert bench.judge(spans=(1,)).passed
    bench.accept()
    assert (bench.baseline_store / "1" / RECORD_FILE).is_file()

    unchanged = bench.judge(bench.records(220), bench.records(180), spans=(2,))
    assert unchanged.passed
    drifts = [
        row
        for row in unchanged.rows
        if row.check == "drift since the data accepted last"
    ]
    assert [(row.slice, row.baseline) for row in drifts] == [
        ("train", "span 1"),
        ("eval", "span 1"),
    ]
    drifted = bench.records(cash=0.9)
    verdict = bench.judge(drifted, drifted, spans=(2,))
    train, evaluation = verdict.failures
    assert (train.check, train.slice, train.kind) == (
        "drift since the data accepted last: 'pay'",
        "train",
        "drift",
    )
    assert evaluation.slice == "eval"
    assert (train.baseline, train.limit_text) == ("span 1", "L-infinity <= 0.1")
    assert train.actual == pytest.approx(0.4)
    assert train.why == "L-infinity distance 0.4, largest for the value 'Cash'"
    warn = Policy(rules=(Rule(action="warn", feature="pay", anomaly="drift"),))
    assert len(bench.judge(drifted, drifted, spans=(2,), policy=warn).warnings) == 2


def test_the_data_itself_is_not_its_baseline(bench):
    bench.judge(spans=(1,))
    first = bench.properties["baseline"]
    bench.accept()
    bench.judge(spans=(1,))
    assert bench.properties["baseline"] == first
    assert json.loads(first) == {"record": "", "damaged": []}


def test_without_a_driver_the_executor_finds_the_baseline(bench):
    from components import artifacts
    from components.data_verdict.executor import Executor

    bench.judge(spans=(1,))
    bench.accept()
    bench.judge(bench.records(220), spans=(2,))
    verdict = bench.artifact(artifacts.DataVerdict, bench.folder / "again")
    properties = bench.properties | {"baseline": ""}
    Executor().Do(bench.inputs, {"verdict": [verdict]}, properties)
    assert Verdict.load(verdict.uri) == Verdict.load(bench.folder / "verdict")


def test_train_is_compared_with_eval(bench):
    row = _only(bench.judge(bench.records(cash=0.9)))
    assert (row.kind, row.check) == ("split_drift", "train against eval: 'pay'")
    assert row.baseline == "split eval"


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


def test_a_comparator_that_measures_nothing_is_named(bench):
    schema = bench.schema.replace("jensen_shannon_divergence", "infinity_norm")
    rows = bench.judge(schema=schema).failures
    assert [(row.kind, row.feature) for row in rows] == [("not_compared", "fare")]
    assert "write jensen_shannon_divergence" in rows[0].why


def test_a_feature_that_training_does_not_have(bench):
    schema = (
        bench.schema + 'feature { name: "sent" type: INT presence { min_count: 1 } '
    )
    verdict = bench.judge(schema=schema + 'not_in_environment: "TRAINING" }')
    assert verdict.passed


def test_values_of_sensitive_features_are_in_no_file(bench):
    secret = "Jane Doe"
    sensitive = json.dumps(["pay", "label", "extra"])
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
    assert {
        ("new_value", "pay"),
        ("wrong_type", "label"),
        ("new_feature", "extra"),
    } <= (kinds)
    for value in (secret, "one'", '"one', "77001", "77,001"):
        assert value not in bench.text()
    assert "record 1\n" in bench.text()


def test_the_statistics_of_the_baseline_are_kept_with_the_verdict(bench):
    bench.judge(spans=(1,))
    assert baseline_statistics(bench.folder / "verdict", []) is None
    bench.accept()
    bench.judge(bench.records(220), spans=(2,))
    found = baseline_statistics(bench.folder / "verdict", ["fare"])
    assert found is not None
    accepted_at = found["baseline"].pop("accepted_at")
    assert accepted_at[:2] == "20"
    assert found["baseline"] == {
        "name": "1",
        "run_id": "",
        "spans": [1],
        "override": None,
    }
    counts = {name: x["num_examples"] for name, x in found["splits"].items()}
    assert counts == {"train": "200", "eval": "200"}
    features = {x["path"]["step"][0]: x for x in found["splits"]["train"]["features"]}
    assert features["pay"]["string_stats"]["top_values"][0]["frequency"] == 100
    assert "max" not in features["fare"]["num_stats"]


def test_an_override_is_recorded_and_the_data_accepted(bench):
    from sluice.errors import DataError

    bad = bench.changed(17, label=[7])
    bench.judge(bad, spans=(1,))
    with pytest.raises(DataError, match="was not accepted"):
        bench.accept()
    verdict = bench.judge(bad, spans=(1,), override="known outage")
    assert verdict.passed and verdict.override == "known outage"
    bench.accept()
    record = json.loads((bench.baseline_store / "1" / RECORD_FILE).read_text())
    assert record["override"] == "known outage"
    assert record["splits"]["train"]["examples"] == 200


def test_a_damaged_entry_does_not_stop_the_run(bench):
    bench.judge(spans=(1,))
    bench.accept()
    (bench.baseline_store / "1" / RECORD_FILE).write_text("{")
    verdict = bench.judge(bench.records(220), spans=(2,))
    assert verdict.passed
    assert "was skipped" in verdict.warnings[0].why


def test_the_gate_fails_with_check_reason_and_place(bench):
    from components.data_gate.executor import Executor
    from sluice.errors import DataError, ExitCode

    bench.judge(bench.changed(17, label=[7]))
    with pytest.raises(DataError) as failure:
        Executor().Do({"verdict": bench.inputs["verdict"]}, {}, {})
    assert failure.value.exit_code == ExitCode.DATA
    assert failure.value.examples == (
        "feature 'label', split train: Unexpectedly large value: 7; expected 0 to 1 "
        f"(validate.default: fail); {bench.folder}/train 0.tfrecord, record 17: "
        "label 7",
    )
    assert "--accept-data" in str(failure.value)


def test_a_wrong_shape_is_reported_even_with_missing_values(bench):
    """All that have the feature have two values: that they are as many says nothing."""
    train = [
        {key: value for key, value in record.items() if number or key != "fare"}
        for number, record in enumerate(
            {**record, "fare": [1.0, 2.0]} for record in bench.records()
        )
    ]
    rules = (
        Rule(action="ignore", anomaly="split_drift"),
        Rule(action="ignore", anomaly="not_compared"),
        Rule(action="ignore", feature="fare", anomaly="missing"),
    )
    row = _only(bench.judge(train, policy=Policy(rules=rules)))
    assert (row.kind, row.feature) == ("wrong_shape", "fare")


def test_the_limit_is_the_expected_value(bench):
    train = bench.records()
    train[0] |= {"pay": [b"Zed"], "label": [7], "new one": [1]}
    del train[1]["fare"]
    train[2]["fare"] = [1.0, 2.0]
    rules = (Rule(action="ignore", anomaly="split_drift"),)
    rows = bench.judge(train, policy=Policy(rules=rules)).failures
    assert {(row.kind, row.limit) for row in rows} == {
        ("new_value", "the domain's 3 values"),
        ("out_of_range", "0 to 1"),
        ("new_feature", "a feature of the schema"),
        ("missing", "in all examples"),
        ("wrong_shape", "1 value"),
    }
    wrong = [{**record, "label": [b"one"]} for record in bench.records()]
    assert _only(bench.judge(wrong)).limit == "INT"


def test_many_new_values_are_bounded(bench):
    train = [
        {**record, "pay": [b"value %d" % number]}
        for number, record in enumerate(bench.records(2000))
    ]
    verdict = bench.judge(
        train,
        policy=Policy(
            rules=(Rule(action="ignore", feature=None, anomaly="split_drift"),)
        ),
    )
    (row,) = [row for row in verdict.failures if row.kind == "new_value"]
    assert len(row.why) < 400
    assert "more characters" in row.why


def test_a_feature_that_is_not_in_production_is_not_judged(bench):
    train = bench.changed(17, fare=[math.nan])
    schema = bench.schema.replace("type: FLOAT", "type: FLOAT lifecycle_stage: ALPHA")
    assert bench.judge(train, schema=schema).passed


def test_environments_need_no_declaration(bench):
    """A feature that says where it is not in says enough."""
    schema = bench.schema.replace('default_environment: "TRAINING"', "")
    schema = schema.replace('default_environment: "SERVING"', "")
    served = [{"fare": r["fare"], "pay": r["pay"]} for r in bench.records()]
    assert bench.judge(schema=schema, serving=served).passed
    late = (
        'feature { name: "sent" type: INT presence { min_count: 1 } '
        'not_in_environment: "TRAINING" }'
    )
    sent = [{**record, "sent": [1]} for record in served]
    assert bench.judge(schema=schema + late, serving=sent).passed


def test_serving_files_without_a_record_are_ruled_by_the_policy(bench):
    row = _only(bench.judge(serving=[]))
    assert (row.kind, row.slice, row.check) == (
        "count",
        "serving",
        "number of examples",
    )
    rules = (Rule(action="warn", anomaly="count"),)
    assert bench.judge(serving=[], policy=Policy(rules=rules)).passed


def test_an_image_limit_that_is_not_measured_is_named(bench):
    schema = bench.schema + (
        'feature { name: "photo" type: BYTES '
        "image_domain { minimum_supported_image_fraction: 1.0 } }"
    )
    row = _only(bench.judge(schema=schema))
    assert (row.kind, row.feature, row.slice) == ("not_compared", "photo", "overall")
    assert "examples.images" in row.why
    assert bench.judge(
        schema=schema, policy=Policy(rules=(Rule(action="ignore", feature="photo"),))
    ).passed
