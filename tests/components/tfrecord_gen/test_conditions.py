"""Conditions over several features: counted by split, and as a filter of records."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tensorflow_metadata.proto.v0 import schema_pb2

from components.data_verdict.judge import Evidence, judge
from components.data_verdict.settings import Expectation, Policy, Settings
from components.tfrecord_gen.conditions import column_types, why_not
from components.tfrecord_gen.settings import HashSplits
from sample_data.tf_example import encode
from sluice.errors import DataError
from tests.kit.ingestion import shard

pytestmark = pytest.mark.unit

TYPES = {
    "fare": "float_list",
    "paid": "float_list",
    "how": "bytes_list",
    "stops": "int64_list",
}
LISTS = ("stops",)
COLUMNS = {"types": TYPES, "lists": LISTS}
TRIPS: list[dict[str, Any]] = [
    {"fare": [5.0], "paid": [5.0], "how": [b"Cash"], "stops": [1, 2]},
    {"fare": [0.0], "paid": [0.0], "how": [b"No Charge"]},
    {"fare": [0.0], "paid": [3.0], "how": [b"Cash"], "stops": [7]},
    {"paid": [3.0], "how": ["Überweisung".encode("latin-1")]},
    {"fare": [9.0], "how": [b"Card"], "stops": [1, 2, 3]},
]
RECORDS = [encode(trip) for trip in TRIPS]


def expected(report, rule, split="train"):
    (found,) = (x for x in report.expected if (x.rule, x.split) == (rule, split))
    return found


@pytest.mark.parametrize(
    ("rule", "broken", "unknown"),
    [
        ("fare > 0 or how == 'No Charge'", [3], 1),
        ("paid >= fare", [], 2),
        ("fare == paid", [3], 2),
        ("coalesce(fare, 0) > 0", [2, 3, 4], 0),
        ("fare is not null", [4], 0),
        ("len(stops) < 3 -- of a list", [5], 2),
        ("how in ('Cash', 'No Charge', 'Card')", [4], 0),
        ("how like 'C%'", [2, 4], 0),
        ("list_sum(stops) < 7", [3], 2),
    ],
)
def test_records_are_counted_and_named(room, rule, broken, unknown):
    path = room.put("a", shard(RECORDS))
    report = room.ingest(path, expect=(rule, "true"), **COLUMNS)
    found = expected(report, rule)
    assert (found.records, found.broken, found.unknown) == (5, len(broken), unknown)
    assert found.examples == tuple(f"{path}, record {number}" for number in broken)
    assert expected(report, "true").broken == 0
    assert room.records() == RECORDS, "nothing is left out"


def test_counts_of_files_and_splits_are_added(room):
    paths = [
        room.put(f"{n}.csv", f"fare,paid\n{n},1\n1,2\n".encode()) for n in range(8)
    ]
    splits = HashSplits(train=1, eval=1)
    types = {"fare": "float_list", "paid": "float_list"}
    options = {"hash_splits": splits, "types": types, "expect": ("paid >= fare",)}
    outputs = []
    for workers in (1, 2):
        report = room.ingest(
            *paths, splits=("train", "eval"), workers=workers, **options
        )
        outputs.append(report.expected)
        by_split = {x.split: x.records for x in report.expected}
        assert by_split == {x: len(room.records(x)) for x in ("train", "eval")}
    assert outputs[0] == outputs[1]
    assert sum(x.broken for x in outputs[0]) == 6
    examples = [x for found in outputs[0] for x in found.examples]
    assert sorted(examples)[0] == f"{paths[2]}, record 1"


@pytest.mark.parametrize(
    ("name", "content"),
    [("a", shard(RECORDS)), ("a.gz", shard(RECORDS, "gzip"))],
)
def test_where_leaves_records_out_before_the_split(room, name, content):
    path = room.put(name, content)
    rules = {"where": "fare >= 0", "expect": ("fare > 0",)}
    report = room.ingest(path, **rules, **COLUMNS)
    assert room.records() == [RECORDS[i] for i in (0, 1, 2, 4)]
    (file,) = report.files
    assert (file.records, file.filtered, file.quarantined) == (4, 1, 0)
    assert expected(report, "fare > 0").examples == tuple(
        f"{path}, record {number}" for number in (2, 3)
    )


def test_nan_is_missing(room):
    """Found: SQL takes it for more than any number."""
    fares = (5.0, math.nan, -1.0, math.inf)
    path = room.put("a", shard([encode({"fare": [x]}) for x in fares]))
    report = room.ingest(path, where="fare > -9", expect=("fare > 0",), **COLUMNS)
    found = expected(report, "fare > 0")
    assert (found.records, found.broken, found.unknown) == (2, 1, 0)


def test_a_file_that_is_filtered_wholly_is_not_empty(room):
    report = room.ingest(room.put("a", shard(RECORDS)), where="false", **COLUMNS)
    assert room.records() == [] and report.empty_files == []
    assert report.files[0].filtered == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fair > 0", '"fair" not found'),
        ("fare", "of the type"),
        ("fare > ", "syntax error"),
        ("how > 3", "Cannot compare"),
        ("fare > 'x'", "Could not convert string 'x'"),
        ("fare > 0) , (paid > 0", "of the type"),
        ("avg(fare) > 1", "about all records"),
        ("(select count(*) from read_csv('/etc/passwd')) > 1", "disabled"),
        ("fare > 0; drop table records", "syntax error"),
        ("fare > 0 and PAID > 0", None),
    ],
)
def test_what_is_no_condition_is_said(text, words):
    why = why_not(text, column_types(TYPES, LISTS)) or ""
    assert words in why if words else why == ""


def test_names_that_differ_in_case_only_are_refused():
    types = column_types({"fare": "float_list", "Fare": "float_list"}, ())
    assert "does not tell apart" in (why_not("fare > 0", types) or "")
    assert why_not("true", types) is None


def test_a_record_for_which_a_condition_fails_ends_the_ingestion(room):
    path = room.put("a", shard(RECORDS))
    with pytest.raises(DataError, match="Could not convert string 'Cash'"):
        room.ingest(path, expect=("how::int > 3",), **COLUMNS)


@pytest.mark.parametrize(
    ("limit", "result"), [(0.0, "FAIL"), (0.19, "FAIL"), (0.2, "pass")]
)
def test_the_gate_judges_each_split(room, limit, result):
    rule = "fare > 0 or how == 'No Charge'"
    report = room.ingest(room.put("a", shard(RECORDS)), expect=(rule,), **COLUMNS)
    policy = Policy(expect=(Expectation(rule=rule, max_fraction=limit),))
    evidence = Evidence(schema_pb2.Schema(), {}, {}, {"overall": report})
    rows = judge(evidence, [], Settings(splits=(), policy=policy))
    (row,) = (x for x in rows if x.check == rule)
    assert (row.slice, row.result, row.actual) == ("train", result, 0.2)
    assert "false for 1 of 5 records; not known for 1 of 5 records" in row.why
    assert row.examples == (f"{room.base}/in/a, record 3",)
