"""Verdicts: passed is derived, JSON round-trips."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from sluice.record.verdict import VERDICT_FILE, Check, Verdict, cell

pytestmark = pytest.mark.unit

GOOD = Check("auc", "overall", 0.9, 0.91, 0.95, True, comparison=">=")
BAD = replace(
    GOOD,
    slice="x: 1",
    baseline=None,
    actual=0.5,
    passed=False,
    why="misses the limit by 0.4000",
)


def test_an_override_passes_but_keeps_the_failures():
    verdict = Verdict("data", (BAD,), override="known outage")
    assert verdict.passed
    assert verdict.failures == (BAD,)


def test_json_round_trip_derives_passed_again(tmp_path):
    verdict = Verdict("model", (GOOD, BAD))
    document = verdict.to_dict()
    assert document["passed"] is False
    document["passed"] = True
    (tmp_path / VERDICT_FILE).write_text(json.dumps(document))
    assert Verdict.load(tmp_path) == verdict
    assert not Verdict.load(tmp_path).passed


@pytest.mark.parametrize(
    ("changes", "text", "compared", "margin"),
    [
        ({}, ">= 0.9", 0.95, 0.05),
        ({"comparison": "<=", "limit": 0.5}, "<= 0.5", 0.95, -0.45),
        ({"measure": "L-infinity", "limit": 0.2}, "L-infinity >= 0.2", 0.95, 0.75),
        ({"measure": "absolute", "limit": -0.1}, "absolute >= -0.1", 0.04, 0.14),
        ({"measure": "relative", "limit": 0.1}, "relative >= 0.1", 4 / 91, None),
        ({"measure": "relative", "baseline": 0}, "relative >= 0.9", math.inf, None),
        ({"measure": "absolute", "baseline": None}, "absolute >= 0.9", None, None),
        ({"limit": "none", "comparison": None}, "none", None, None),
        ({"limit": None, "comparison": None}, None, None, None),
    ],
)
def test_what_is_compared_with_the_limit(changes, text, compared, margin):
    row = replace(GOOD, **changes)
    assert row.limit_text == text
    assert row.compared == (compared and pytest.approx(compared))
    if margin is not None:
        assert row.margin == pytest.approx(margin)


def _ruled(severity: str, passed: bool) -> Check:
    return Check(
        check="feature 'fare'",
        slice="train",
        limit="in all examples",
        baseline=None,
        actual=None,
        passed=passed,
        why="too small",
        severity=severity,  # type: ignore[arg-type]
        policy=f"validate.default: {severity}",
        examples=("train-0, record 7: fare -1",),
    )


def test_a_warning_passes_and_is_marked():
    rows = (GOOD, _ruled("warn", True), _ruled("ignore", True), _ruled("fail", False))
    assert [row.result for row in rows] == ["pass", "warn", "ignored", "FAIL"]
    verdict = Verdict("data", rows[:3])
    assert verdict.passed
    assert verdict.warnings == (rows[1],)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1 / 60000, "1.7e-05"), (-0.00002, "-2e-05"), (0.0001, "0.0001"), (0.0, "0.0000")],
)
def test_small_numbers_are_not_shown_as_0(value, shown):
    assert cell(value) == shown
