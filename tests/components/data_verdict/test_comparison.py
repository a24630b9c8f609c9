"""What TFDV compares, and what it leaves out without a word."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from components.data_verdict.comparison import Pair, compare

pytestmark = pytest.mark.tf

Record = dict[str, Any]


def _compare(
    bench: Any, current: list[Record], control: list[Record]
) -> dict[str | None, str]:
    """Returns why, by the feature that was not compared."""
    pair = Pair(
        "drift",
        "train",
        "1",
        bench.statistics_of(current),
        bench.statistics_of(control),
    )
    comparison = compare(text_format.Parse(bench.schema, schema_pb2.Schema()), pair)
    assert comparison is not None and comparison.features == 2
    assert {finding.kind for finding in comparison.findings} <= {"not_compared"}
    return {finding.feature: finding.why for finding in comparison.findings}


def test_a_few_nan_and_infinities_can_be_compared(bench: Any) -> None:
    records = bench.changed(17, fare=[math.nan])
    records[3]["fare"] = [-math.inf]
    assert _compare(bench, records, bench.records()) == {}


def test_what_cannot_be_compared_is_said(bench: Any) -> None:
    nothing_finite = [{**record, "fare": [math.nan]} for record in bench.records()]
    without = [{"fare": r["fare"], "label": r["label"]} for r in bench.records()]
    assert (
        "no finite values" in _compare(bench, nothing_finite, bench.records())["fare"]
    )
    assert _compare(bench, without, bench.records()) == {
        "pay": "the feature is missing from this data"
    }
    assert _compare(bench, bench.records(), without) == {
        "pay": "previous data is missing."
    }
    assert _compare(bench, without, without) == {}
