"""Verdicts: passed is derived, JSON round-trips."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from sluice.record.verdict import VERDICT_FILE, Check, Verdict, cell

pytestmark = pytest.mark.unit

GOOD = Check(check="auc", limit=0.9, comparison=">=", baseline=0.91, actual=0.95)
BAD = replace(
    GOOD,
    slice="x: 1",
    baseline=None,
    actual=0.5,
    result="FAIL",
    why="misses the limit by 0.4000",
)


def test_an_override_passes_but_keeps_the_failures():
    verdict = Verdict("data", (BAD,), override="known outage")
    assert verdict.passed
    assert verdict.failures == (BAD,)


def test_json_round_trip_derives_passed_again(tmp_path):
    verdict = Verdict("model", (GOOD, BAD))
    document = json.loads(verdict.to_json())
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


@pytest.mark.parametrize(
    ("result", "policy", "stored"),
    [
        ("pass", None, (True, None, None)),
        ("FAIL", None, (False, None, None)),
        ("FAIL", "validate.default: fail", (False, "fail", None)),
        ("warn", "validate.default: warn", (True, "warn", None)),
        ("ignored", "validate.default: ignore", (True, "ignore", None)),
        ("yes", None, (True, None, True)),
        ("no", None, (True, None, False)),
    ],
)
def test_a_result_is_stored_as_three_keys_and_read_again(
    result, policy, stored, tmp_path
):
    row = replace(GOOD, result=result, policy=policy, examples=("train-0, record 7",))
    verdict = Verdict("data", (row,))
    verdict.save(str(tmp_path))
    document = json.loads((tmp_path / VERDICT_FILE).read_text())["rows"][0]
    assert tuple(document[x] for x in ("passed", "severity", "answer")) == stored
    assert Verdict.load(tmp_path) == verdict
    assert verdict.passed == stored[0]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1 / 60000, "1.667e-5"), (0.0001, "0.0001"), (0.051234, "0.05123"), (0.0, "0")],
)
def test_numbers_have_four_digits_as_on_the_pages(value, shown):
    assert cell(value) == shown
