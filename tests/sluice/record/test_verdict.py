"""Verdicts: passed is derived, JSON round-trips."""

from __future__ import annotations

import json

import pytest

from sluice.record.verdict import VERDICT_FILE, Check, Verdict, as_text, cell

pytestmark = pytest.mark.unit

GOOD = Check("auc", "overall", ">= 0.9", 0.91, 0.95, True)
BAD = Check("auc", "x: 1", ">= 0.9", None, 0.5, False, "misses the limit by 0.4000")


def test_one_failed_row_fails_the_verdict():
    assert Verdict("model", (GOOD,)).passed
    assert not Verdict("model", (GOOD, BAD)).passed
    assert Verdict("model", (GOOD, BAD)).failures == (BAD,)


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


def test_text_shows_every_row_aligned():
    lines = as_text([GOOD, BAD]).splitlines()
    assert "0.9500" in lines[1] and "pass" in lines[1]
    assert "FAIL" in lines[2] and lines[2].endswith("misses the limit by 0.4000")
    assert lines[0].index("limit") == lines[1].index(">=") == lines[2].index(">=")


def _ruled(severity: str, passed: bool) -> Check:
    return Check(
        check="feature 'fare'",
        slice="train",
        limit=">= 0",
        baseline=None,
        actual="anomaly",
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


def test_examples_and_policy_round_trip_and_show(tmp_path):
    verdict = Verdict("data", (_ruled("warn", True),))
    (tmp_path / VERDICT_FILE).write_text(json.dumps(verdict.to_dict()))
    assert Verdict.load(tmp_path) == verdict
    lines = as_text(verdict.rows).splitlines()
    assert lines[1].endswith("too small (validate.default: warn)")
    assert lines[2:] == ["", "feature 'fare', train:", "  train-0, record 7: fare -1"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1 / 60000, "1.7e-05"), (-0.00002, "-2e-05"), (0.0001, "0.0001"), (0.0, "0.0000")],
)
def test_small_numbers_are_not_shown_as_0(value, shown):
    assert cell(value) == shown
