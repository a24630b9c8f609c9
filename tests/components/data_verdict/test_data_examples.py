"""Search for example records of a verdict's failed rows."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from components.data_verdict import search_records
from components.data_verdict.search_records import add_examples
from components.tfrecord_gen.ingestion_report import FileReport
from sluice.record.verdict import Check
from tests.kit.ingestion_reports import a_file, a_report

pytestmark = pytest.mark.unit

SCHEMA = text_format.Parse(
    """
    feature { name: "fare" type: FLOAT float_domain { min: 0 max: 9.5 } }
    feature { name: "pay" type: BYTES domain: "pay" }
    feature { name: "own" type: BYTES string_domain { value: "a" } }
    feature { name: "label" type: INT shape { dim { size: 1 } } int_domain { max: 1 } }
    feature { name: "tags" type: INT value_count { min: 1 max: 2 } }
    string_domain { name: "pay" value: "Cash" value: "Card" }
    """,
    schema_pb2.Schema(),
)
GOOD = {"fare": [1.5], "pay": [b"Cash"], "own": [b"a"], "label": [1], "tags": [1, 2]}
BAD = {**GOOD, "fare": [-1.0]}


def _row(kind: str = "out_of_range", feature: str = "fare", **changes: Any) -> Check:
    fields: dict[str, Any] = {
        "check": f"feature {feature!r}",
        "slice": "train",
        "result": "FAIL",
        "kind": kind,
        "feature": feature,
    }
    return Check(**(fields | changes))


def _find(files: list[FileReport], *rows: Check, **options: Any) -> list[list[str]]:
    reports = [a_report(*files)]
    return [
        list(row.examples) for row in add_examples(rows, reports, SCHEMA, **options)
    ]


@pytest.mark.parametrize(
    ("kind", "feature", "values", "shown"),
    [
        ("out_of_range", "fare", [-3.5], "fare -3.5"),
        ("not_finite", "fare", [-math.inf], "fare -inf"),
        ("new_value", "own", [b"b"], "own 'b'"),
        ("new_value", "pay", [b"\xff\xfe"], "pay 2 bytes that are not text"),
        ("new_value", "pay", [b"z" * 99], "pay '" + "z" * 59 + "..."),
        ("invalid_text", "own", [b"\xff"], "own 1 bytes that are not text"),
        ("wrong_type", "label", [b"one"], "label bytes_list 'one'"),
        ("wrong_type", "fare", [7, 8], "fare int64_list 7 and 1 more values"),
        ("wrong_shape", "tags", [0, 1, 2], "tags 3 values"),
    ],
)
def test_a_record_that_breaks_the_schema_is_found(
    tmp_path, kind, feature, values, shown
):
    bad = {**GOOD, feature: values}
    file = a_file(tmp_path / "with space.tfrecord", [GOOD, bad, GOOD])
    assert _find([file], _row(kind, feature)) == [[f"{file.path}, record 2: {shown}"]]


def test_the_search_ends_after_five_examples_of_the_split(tmp_path, monkeypatch):
    files = [
        a_file(tmp_path / "eval", [BAD] * 3, "eval"),
        a_file(tmp_path / "train-0", [GOOD, *[BAD] * 4]),
        a_file(tmp_path / "train-1", [BAD] * 4),
    ]
    (found,) = _find(files, _row())
    assert [line.split(": ")[0] for line in found] == [
        *(f"{files[1].path}, record {number}" for number in (2, 3, 4, 5)),
        f"{files[2].path}, record 1",
    ]
    monkeypatch.setattr(search_records, "MAX_SECONDS", -1)
    assert _find(files, _row()) == [[]]


def test_records_that_where_has_left_out_are_no_examples(tmp_path):
    small = {**GOOD, "fare": [-0.5]}
    file = a_file(tmp_path / "a", [small, BAD, {**BAD, "label": [b"x"]}])
    report = a_report(file, where="fare[1] < -0.7 and label == 1")
    (row,) = add_examples([_row()], [report], SCHEMA)
    assert [*row.examples] == [f"{file.path}, record 2: fare -1"]


def test_values_of_a_sensitive_feature_are_withheld(tmp_path):
    file = a_file(tmp_path / "a", [{**GOOD, "pay": [b"Jane Doe"]}])
    (found,) = _find([file], _row("new_value", "pay"), sensitive=["pay"])
    assert found == [f"{file.path}, record 1"]


def test_serving_examples_are_searched_in_their_own_files(tmp_path):
    files = [
        a_file(tmp_path / "a", [BAD], None),
        a_file(tmp_path / "sent", [GOOD, {**GOOD, "fare": [-2.0]}], "serving"),
    ]
    assert _find(files, _row(slice="serving"), _row()) == [
        [f"{files[1].path}, record 2: fare -2"],
        [f"{files[0].path}, record 1: fare -1"],
    ]
