"""The data gate's decision, on plain protos and reports."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import anomalies_pb2, statistics_pb2

from components.data_verdict.judge import Evidence, judge
from components.data_verdict.policy import Policy, Rule
from components.tfrecord_gen.report import FirstError, Problem, Report
from sluice.record.verdict import Check, Verdict

pytestmark = pytest.mark.unit

TYPES = anomalies_pb2.AnomalyInfo
WARN = Policy(default="warn")


def _statistics(
    count: int, features: str = ""
) -> statistics_pb2.DatasetFeatureStatisticsList:
    statistics = statistics_pb2.DatasetFeatureStatisticsList()
    dataset = statistics.datasets.add()
    text_format.Parse(features, dataset)
    dataset.num_examples = count
    return statistics


def _anomalies(**features: str) -> anomalies_pb2.Anomalies:
    anomalies = anomalies_pb2.Anomalies()
    for name, description in features.items():
        _add(
            anomalies,
            name,
            (TYPES.ENUM_TYPE_UNEXPECTED_STRING_VALUES, description),
        )
    return anomalies


def _add(
    anomalies: anomalies_pb2.Anomalies, name: str, *reasons: tuple[int, str]
) -> None:
    info = anomalies.anomaly_info[name]
    info.path.step.append(name)
    for kind, description in reasons:
        info.reason.add(
            type=kind, description=description, short_description="Short words"
        )


def _report(**fields: Any) -> Report:
    known: dict[str, Any] = {
        "files": (),
        "splits": {},
        "records": 100,
        "quarantined": 0,
        "lost_bytes": 0,
        "bytes": 1000,
        "corrupt_fraction": 0.0,
    }
    return Report(**(known | fields))


GOOD = {"train": _statistics(10), "eval": _statistics(5)}
NO_ANOMALIES = {"train": _anomalies(), "eval": _anomalies()}


def _judge(policy: Policy | None = None, **changes: Any) -> Verdict:
    fields: dict[str, Any] = {
        "splits": list(changes.get("statistics", GOOD)),
        "statistics": GOOD,
        "anomalies": NO_ANOMALIES,
    }
    return judge(Evidence(**(fields | changes)), policy or Policy())


def _rows(verdict: Verdict, check: str) -> list[Check]:
    return [row for row in verdict.rows if row.check == check]


def test_clean_data_passes_with_a_row_per_check():
    verdict = _judge()
    assert verdict.passed
    assert [(row.check, row.slice) for row in verdict.rows] == [
        ("number of examples", "train"),
        ("anomalies against the schema", "train"),
        ("number of examples", "eval"),
        ("anomalies against the schema", "eval"),
    ]


def test_an_anomaly_in_any_split_fails_and_names_feature_and_policy():
    anomalies = {**NO_ANOMALIES, "eval": _anomalies(fare="'Zed' is new")}
    (row,) = _judge(anomalies=anomalies).failures
    assert (row.check, row.slice, row.why) == ("feature 'fare'", "eval", "'Zed' is new")
    assert (row.kind, row.feature, row.limit) == ("new_value", "fare", "Short words")
    assert row.policy == "validate.default: fail"


@pytest.mark.parametrize("statistics", [{}, {"train": _statistics(0)}])
@pytest.mark.parametrize("policy", [Policy(), WARN, Policy(default="ignore")])
def test_an_empty_split_is_one_failure_under_any_policy(statistics, policy):
    anomalies = {"train": _anomalies(a="missing", b="missing")}
    verdict = _judge(
        policy, splits=["train"], statistics=statistics, anomalies=anomalies
    )
    (row,) = verdict.failures
    assert row.why == "the split 'train' holds no examples"
    assert row.policy == "always: fail"


def test_a_warning_is_a_row_and_passes():
    rules = (Rule(action="warn", feature="fare", anomaly="new_value"),)
    verdict = _judge(
        Policy(rules=rules),
        anomalies={**NO_ANOMALIES, "eval": _anomalies(fare="odd", label="odd")},
    )
    (failure,) = verdict.failures
    assert failure.feature == "label"
    (warning,) = verdict.warnings
    assert (warning.feature, warning.policy) == ("fare", "validate.rules[0]: warn")
    assert (warning.passed, warning.result) == (True, "warn")


def test_an_ignored_anomaly_is_still_a_row():
    verdict = _judge(
        Policy(default="ignore"), anomalies={**NO_ANOMALIES, "eval": _anomalies(a="x")}
    )
    assert verdict.passed and not verdict.warnings
    (row,) = _rows(verdict, "feature 'a'")
    assert (row.result, row.policy) == ("ignored", "validate.default: ignore")


@pytest.mark.parametrize(
    ("count", "limit", "passed"),
    [(99, ">= 100", False), (100, ">= 100", True), (101, "<= 100", False)],
)
def test_bounds_on_the_number_of_examples(count, limit, passed):
    policy = Policy(
        min_examples={"train": 100},
        max_examples={"train": 100} if "<" in limit else {},
    )
    verdict = _judge(policy, splits=["train"], statistics={"train": _statistics(count)})
    *_, row = _rows(verdict, "number of examples")
    assert (row.limit_text, row.actual, row.passed) == (limit, count, passed)
    assert verdict.passed == passed


@pytest.mark.parametrize(("last", "passed"), [(20, True), (21, False), (6, False)])
def test_the_change_in_the_number_of_examples(last, passed):
    verdict = _judge(
        Policy(max_count_change=0.5),
        splits=["train"],
        baseline="17",
        baseline_counts={"train": last},
    )
    (row,) = _rows(verdict, "change in examples")
    assert (row.baseline, row.passed) == (last, passed)
    assert row.why == f"10 examples, {last} in 17"


def test_the_first_data_has_nothing_to_change_from():
    assert not _rows(_judge(Policy(max_count_change=0.5)), "change in examples")


def test_one_feature_has_a_row_for_each_kind():
    anomalies = _anomalies()
    _add(
        anomalies,
        "y",
        (TYPES.UNEXPECTED_DATA_TYPE, "Expected INT."),
        (TYPES.INT_TYPE_NOT_INT_STRING, "Such as 'one'."),
        (TYPES.FEATURE_TYPE_LOW_FRACTION_PRESENT, "0.9 of 1.0"),
    )
    rows = _judge(anomalies={**NO_ANOMALIES, "train": anomalies}).failures
    assert [(row.kind, row.why) for row in rows] == [
        ("wrong_type", "Expected INT. Such as 'one'."),
        ("missing", "0.9 of 1.0"),
    ]


def test_an_anomaly_of_the_whole_data_set_fails():
    anomalies = anomalies_pb2.Anomalies()
    anomalies.dataset_anomaly_info.description = "too few examples"
    verdict = _judge(splits=["train"], anomalies={"train": anomalies})
    assert [row.why for row in verdict.failures] == ["too few examples"]


def test_a_missing_report_is_not_taken_for_clean_data():
    verdict = _judge(
        Policy(default="ignore"), anomalies={"train": _anomalies(), "eval": None}
    )
    (row,) = verdict.failures
    assert (row.slice, row.why) == (
        "eval",
        "ExampleValidator has left no report on this split",
    )


def _damaged(fraction: float) -> Report:
    return _report(
        quarantined=3,
        corrupt_fraction=fraction,
        lost_bytes=1200,
        errors={"checksum": 2, "length": 1},
        first_errors=tuple(
            FirstError(f"train-{n}", n, 120, "checksum", "is not its data's")
            for n in range(6)
        ),
    )


def test_damage_within_the_limit_passes_and_is_reported():
    verdict = _judge(Policy(max_corrupt_fraction=0.01), report=_damaged(0.01))
    (row,) = _rows(verdict, "damaged records")
    assert verdict.passed
    assert (row.limit_text, row.actual, row.result) == ("<= 0.01", 0.01, "pass")
    assert row.why == (
        "3 of 103 records quarantined (2 checksum, 1 length), 1,200 bytes cannot be "
        "read"
    )


def test_damage_above_the_limit_fails_with_five_places():
    verdict = _judge(Policy(max_corrupt_fraction=0.01), report=_damaged(0.0101))
    (row,) = verdict.failures
    assert (row.kind, row.policy) == ("corrupt", "examples.max_corrupt_fraction: 0.01")
    assert len(row.examples) == 5
    assert row.examples[0] == "train-0, whole file: checksum: is not its data's"
    assert row.examples[1].startswith("train-1, record 1 at byte 120: ")


def test_inconsistent_files_fail_by_kind():
    problems = [
        Problem("duplicate_shard", f"b-{n}", "Twice.", "new content", "that of a")
        for n in range(7)
    ]
    problems.append(Problem("manifest", "c", "Short.", "9 records", "8"))
    rows = _judge(report=_report(problems=tuple(problems))).failures
    assert [(row.kind, row.actual) for row in rows] == [
        ("duplicate_shard", 7),
        ("manifest", 1),
    ]
    assert rows[0].why == "Twice, and 6 more"
    assert rows[0].examples[-1] == "and 2 more"
    assert rows[1].examples == ("c: expected 9 records, found 8",)


def test_an_override_is_recorded_only_if_needed():
    bad = Evidence(["train"], GOOD, {"train": _anomalies(fare="odd")})
    verdict = judge(bad, Policy(), "known outage")
    assert verdict.passed and verdict.override == "known outage"
    assert len(verdict.failures) == 1
    good = Evidence(["train"], GOOD, NO_ANOMALIES)
    assert judge(good, Policy(), "known outage").override is None


def test_values_of_the_data_cannot_disturb_a_terminal():
    anomalies = {**NO_ANOMALIES, "eval": _anomalies(fare="new: a\x1b[2J\nb\u202e")}
    (row,) = _judge(anomalies=anomalies).failures
    assert row.why == r"new: a\u001b[2J\nb\u202e"


def test_a_split_that_grows_from_nothing_has_no_change():
    verdict = _judge(Policy(max_count_change=0.1), baseline_counts={"train": 0})
    assert not _rows(verdict, "change in examples")
