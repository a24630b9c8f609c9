"""Verdicts: passed is derived, JSON round-trips."""

from __future__ import annotations

import json

import pytest

from sluice.verdict import VERDICT_FILE, Check, Verdict, as_text

pytestmark = pytest.mark.unit

GOOD = Check("auc", "overall", ">= 0.9", 0.91, 0.95, True)
BAD = Check("auc", "x: 1", ">= 0.9", None, 0.5, False, "misses the limit by 0.4000")


def test_one_failed_row_fails_the_verdict() -> None:
    assert Verdict("model", (GOOD,)).passed
    assert not Verdict("model", (GOOD, BAD)).passed
    assert Verdict("model", (GOOD, BAD)).failures == (BAD,)


def test_an_override_passes_but_keeps_the_failures() -> None:
    verdict = Verdict("data", (BAD,), override="known outage")
    assert verdict.passed
    assert verdict.failures == (BAD,)


def test_json_round_trip_derives_passed_again(tmp_path) -> None:
    verdict = Verdict("model", (GOOD, BAD))
    document = verdict.to_dict()
    assert document["passed"] is False
    document["passed"] = True
    (tmp_path / VERDICT_FILE).write_text(json.dumps(document))
    assert Verdict.load(tmp_path) == verdict
    assert not Verdict.load(tmp_path).passed


def test_text_shows_every_row_aligned() -> None:
    lines = as_text([GOOD, BAD]).splitlines()
    assert "0.9500" in lines[1] and "pass" in lines[1]
    assert "FAIL" in lines[2] and lines[2].endswith("misses the limit by 0.4000")
    assert lines[0].index("limit") == lines[1].index(">=") == lines[2].index(">=")
