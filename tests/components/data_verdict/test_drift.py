"""Drift and skew as TFDV measures them, and comparators that it skips silently."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from components.data_verdict.distances import Pair
from components.data_verdict.drift import compare

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


def test_a_few_nan_and_infinities_can_be_compared(bench):
    records = bench.changed(17, fare=[math.nan])
    records[3]["fare"] = [-math.inf]
    assert _compare(bench, records, bench.records()) == {}


def test_a_comparison_that_is_not_possible_is_reported(bench):
    nothing_finite = [{**record, "fare": [math.nan]} for record in bench.records()]
    without = [{"fare": r["fare"], "label": r["label"]} for r in bench.records()]
    assert (
        "no finite values" in _compare(bench, nothing_finite, bench.records())["fare"]
    )
    assert _compare(bench, without, bench.records()) == {
        "pay": "the feature is missing from this data"
    }
    assert _compare(bench, bench.records(), without) == {
        "pay": "the feature is missing from what it is compared with: 1"
    }
    assert _compare(bench, without, without) == {}


TWO_LIMITS = """
feature {
  name: "pay" type: BYTES
  drift_comparator {
    infinity_norm { threshold: 0.1 }
    jensen_shannon_divergence { threshold: 0.9 }
  }
}
"""


def _compare_as(
    bench: Any,
    schema: str,
    current: list[Record],
    control: list[Record] | None = None,
) -> Any:
    pair = Pair(
        "drift",
        "train",
        "1",
        bench.statistics_of(current),
        bench.statistics_of(bench.records() if control is None else control),
    )
    return compare(text_format.Parse(schema, schema_pb2.Schema()), pair)


def test_of_two_limits_the_missed_one_is_reported(bench):
    comparison = _compare_as(bench, TWO_LIMITS, bench.records(cash=0.9))
    (finding,) = comparison.findings
    assert (finding.measure, finding.limit) == ("L-infinity", 0.1)
    assert finding.actual == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("comparator", "why"),
    [
        ("infinity_norm {}", "the comparator has no threshold"),
        ("", "the comparator has no threshold"),
    ],
)
def test_a_comparator_without_a_threshold_is_named(bench, comparator, why):
    schema = (
        f'feature {{ name: "pay" type: BYTES drift_comparator {{ {comparator} }} }}'
    )
    (finding,) = _compare_as(bench, schema, bench.records()).findings
    assert (finding.kind, finding.why) == ("not_compared", why)


def test_bytes_that_are_not_text_are_not_compared(bench):
    """TFDV counts all of them as one value, so their distance is 0."""
    schema = (
        'feature { name: "pay" type: BYTES '
        "drift_comparator { infinity_norm { threshold: 0.1 } } }"
    )
    records = [{**record, "pay": [b"\xff\xfe"]} for record in bench.records()]
    (finding,) = _compare_as(bench, schema, records, records).findings
    assert finding.kind == "not_compared" and "not text" in finding.why
    some = [*records[:20], *bench.records()]
    assert _compare_as(bench, schema, some, some).findings == ()


def test_a_feature_that_is_not_in_production_is_not_compared(bench):
    for stage in ("DEPRECATED", "PLANNED", "ALPHA", "DEBUG_ONLY", "DISABLED"):
        schema = TWO_LIMITS.replace("BYTES", f"BYTES lifecycle_stage: {stage}")
        assert _compare_as(bench, schema, bench.records(cash=0.9)) is None


def test_the_number_of_examples_has_a_comparator_too(bench):
    schema = (
        "dataset_constraints { num_examples_drift_comparator "
        "{ min_fraction_threshold: 0.5 max_fraction_threshold: 1.5 } }"
    )
    assert _compare_as(bench, schema, bench.records(100)).findings == ()
    for count in (99, 301):
        (finding,) = _compare_as(bench, schema, bench.records(count)).findings
        assert (finding.kind, finding.feature) == ("count_change", None)
        assert finding.baseline == "1"
