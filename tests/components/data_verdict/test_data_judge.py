"""The data gate's decision: counts, damage, inconsistent files, the policy."""

from __future__ import annotations

from typing import Any

import pytest
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from components.data_baselines import Entry
from components.data_verdict.judge import Evidence, judge
from components.data_verdict.settings import Policy, Settings
from components.tfrecord_gen.ingestion_report import EqualRecords, Problem, Report
from sluice.record.verdict import Verdict
from sluice.tfrecords.frame_reader import RecordError
from tests.kit.ingestion_reports import a_file, a_report

pytestmark = pytest.mark.unit

ACCEPTED = Entry(
    name="span 17", accepted_at="", run_id="", spans=(), splits={}, override=None
)


def _judge(policy: Policy | None = None, count: int = 10, **changes: Any) -> list[Any]:
    statistics = statistics_pb2.DatasetFeatureStatisticsList()
    statistics.datasets.add(num_examples=count)
    fields: dict[str, Any] = {
        "schema": schema_pb2.Schema(),
        "statistics": {"train": statistics},
        "anomalies": {"train": anomalies_pb2.Anomalies()},
    }
    settings = Settings(splits=("train",), policy=policy or Policy())
    return judge(Evidence(**(fields | changes)), [], settings)


def _report(**fields: Any) -> dict[str, Report]:
    return {"overall": a_report(**fields)}


@pytest.mark.parametrize("default", ["fail", "warn", "ignore"])
def test_a_split_that_cannot_be_judged_is_one_failure_under_any_policy(default):
    policy = Policy(default=default)
    for changes, why in (
        ({"count": 0}, "the split 'train' holds no examples"),
        ({"statistics": {}}, "the split 'train' holds no examples"),
    ):
        (row,) = [row for row in _judge(policy, **changes) if not row.passed]
        assert (row.why, row.policy) == (why, "always: fail")


@pytest.mark.parametrize(
    ("count", "limit", "result"),
    [(99, ">= 100", "FAIL"), (100, ">= 100", "pass"), (101, "<= 100", "FAIL")],
)
def test_bounds_on_the_number_of_examples(count, limit, result):
    policy = Policy(min_examples={"train": 100}, max_examples={"train": 100})
    rows = [row for row in _judge(policy, count) if row.limit_text == limit]
    assert [(row.actual, row.result) for row in rows] == [(count, result)]


@pytest.mark.parametrize(
    ("last", "passed"), [(20, True), (21, False), (6, False), (0, None), (None, None)]
)
def test_the_change_in_the_number_of_examples(last, passed):
    baseline = ACCEPTED.model_copy(update={"splits": {"train": last}})
    rows = _judge(
        Policy(max_count_change=0.5), baseline=None if last is None else baseline
    )
    rows = [row for row in rows if row.check == "change in examples"]
    assert [(row.baseline, row.passed) for row in rows] == (
        [] if passed is None else [(last, passed)]
    )
    for row in rows:
        about = f"the split 'train' holds 10 examples, {last} in span 17: "
        assert row.why == f"{about}{100 * row.actual:.3g} % away, limit 50 %"


def test_damage_is_judged_by_its_limit_with_five_places():
    report = _report(
        quarantined=3,
        corrupt_fraction=0.01,
        lost_bytes=1200,
        errors={"checksum": 2, "length": 1},
        first_errors=tuple(
            RecordError(f"train-{n}", n, 120, "checksum", "is not its data's")
            for n in range(6)
        ),
    )
    row = _judge(Policy(max_corrupt_fraction=0.01), reports=report)[0]
    assert (row.limit_text, row.actual, row.result) == ("<= 0.01", 0.01, "pass")
    assert row.why == (
        "3 of 103 records are damaged and 1,200 bytes cannot be read (1 %), limit 1 %"
    )
    row = _judge(Policy(max_corrupt_fraction=0.0099), reports=report)[0]
    assert (row.kind, row.result) == ("corrupt", "FAIL")
    assert row.policy == "examples.max_corrupt_fraction: 0.0099"
    assert row.remedy == "write or copy the damaged files again"
    assert len(row.examples) == 5
    assert row.examples[0] == "train-0, whole file: checksum: is not its data's"
    assert row.examples[1].startswith("train-1, record 1, byte 120: ")
    of_values = a_report(corrupt_fraction=0.01, errors={"checksum": 1, "label": 2})
    row = _judge(reports={"overall": of_values})[0]
    assert row.remedy == "correct the records, or what the schema and the classes say"


def test_slices_need_utf_8_also_where_the_schema_has_no_domain():
    statistics = statistics_pb2.DatasetFeatureStatisticsList()
    found = statistics.datasets.add(num_examples=10)
    for name, count in (("city", 3), ("street", 3), ("country", 0)):
        feature = found.features.add(type="STRING")
        feature.path.step.append(name)
        feature.string_stats.invalid_utf8_count = count
    settings = Settings(splits=("train",), policy=Policy(), sliced=("city", "country"))
    known = {"train": anomalies_pb2.Anomalies()}
    evidence = Evidence(schema_pb2.Schema(), {"train": statistics}, known)
    (row,) = [row for row in judge(evidence, [], settings) if not row.passed]
    assert (row.kind, row.feature, row.limit) == ("invalid_text", "city", "UTF-8")
    assert row.why == "3 values are not UTF-8, which evaluate.slices needs"
    assert (row.remedy or "").endswith("or leave it out of evaluate.slices")
    assert row.command is None


def test_files_without_records_are_counted(tmp_path):
    files = [a_file(tmp_path / str(n), [{"x": [1]}][: n % 2]) for n in range(5)]
    (row,) = [
        row
        for row in _judge(reports={"overall": a_report(*files)})
        if row.check == "files without records"
    ]
    assert (row.actual, row.result) == (3, "pass")
    assert row.examples == tuple(str(tmp_path / name) for name in "024")


def test_damage_of_a_shard_is_one_cause_that_no_schema_repairs():
    path = "/data/train-00000-of-00004"
    error = RecordError(path, 26, 4850, "checksum", "the data does not match")
    missing = Problem("manifest", path, "has 299 records, in the manifest 300")
    damaged = {"quarantined": 10, "corrupt_fraction": 0.00056, "records": 17_790}
    report = _report(**damaged, first_errors=(error,), problems=(missing,))
    anomalies = anomalies_pb2.Anomalies()
    reason = anomalies.anomaly_info["pay"].reason.add()
    reason.type = anomalies_pb2.AnomalyInfo.ENUM_TYPE_UNEXPECTED_STRING_VALUES
    reason.description = "Examples contain values missing from the schema: Bit."
    known: dict[str, Any] = {"anomalies": {"train": anomalies}}
    verdict = Verdict("data", tuple(_judge(reports=report, **known)))
    assert len(verdict.failures) == 3 and verdict.causes == [
        "10 of 17,800 records are damaged (0.056 %), limit 0; "
        "at train-00000-of-00004, record 26, byte 4,850: checksum",
        "feature 'pay' in train: examples contain values missing from the schema: Bit",
    ]
    assert verdict.remedies == [("write or copy the damaged files again", None)]
    verdict = Verdict("data", tuple(_judge(**known)))
    assert [command for _, command in verdict.remedies] == ["schema diff"]


def test_records_of_a_split_that_are_in_train_are_a_warning():
    pairs = ("train", "train"), ("test", "eval"), ("test", "train")
    equal = tuple(EqualRecords(*pair, 2, ("f, record 1",)) for pair in pairs)
    splits = {"train": 10, "eval": 5, "test": 5}
    rows = _judge(reports=_report(equal=equal, splits=splits))
    (row,) = [row for row in rows if row.kind == "leak"]
    assert (row.slice, row.result, row.actual) == ("test", "warn", 2)
    assert row.why == "2 of 5 records are in train as well"
