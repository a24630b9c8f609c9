"""Comparison of a rehearsed run with a local one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reports.read_run import RunData
from runners.rehearsal.compare_runs import Difference, compare_runs
from sluice.record.run_record import DocumentRecord, RunRecord
from sluice.record.verdict import Check, Verdict

pytestmark = pytest.mark.unit


def _run(
    mean: float = 1.0,
    accuracy: float = 0.97,
    *,
    baseline: float | str | None = None,
    passed: bool = True,
    status: Any = "succeeded",
) -> RunData:
    row = Check("accuracy", "overall", ">= 0.9", baseline, accuracy, passed)
    record = RunRecord(
        "r",
        "digits",
        "2026-01-01",
        "sluice",
        status=status,
        gates=[Verdict("model", (row,)).to_dict()],
    )
    feature = {
        "name": "x",
        "type": "FLOAT",
        "string": None,
        "bytes": None,
        "numeric": {"mean": mean, "bins": [1, 2]},
        "present": 10,
        "missing": 0,
    }
    split = {"split": "train", "examples": 10, "features": [feature]}
    metric = {
        "slice": {},
        "compared_with": None,
        "model": "candidate",
        "output": "",
        "sub_key": {},
        "aggregation": None,
        "change": False,
        "metrics": {"accuracy": accuracy},
    }
    content: dict[str, Any] = {
        "statistics": {"splits": [split]},
        "metrics": {"metrics": [metric]},
    }
    record.documents = [DocumentRecord(kind, "Node", kind, "") for kind in content]
    documents: dict[str, dict[str, Any] | None] = {
        kind: {"node": "Node", "artifacts": [item]} for kind, item in content.items()
    }

    return RunData(Path(), record, _documents=documents)


def test_same_runs() -> None:
    assert compare_runs(_run(), _run(1.0 + 1e-9, 0.971), 0.01) == ()


@pytest.mark.parametrize(
    ("rehearsed", "difference"),
    [
        (
            _run(mean=1.1),
            Difference(
                "statistics: x of train", "numeric mean 1.0", "numeric mean 1.1"
            ),
        ),
        (
            _run(accuracy=0.95),
            Difference("metrics: accuracy of overall", "0.97", "0.95"),
        ),
        (
            _run(passed=False),
            Difference("verdict: model gate, accuracy of overall", "pass", "FAIL"),
        ),
        (
            _run(baseline=0.9),
            Difference(
                "verdict: model gate, accuracy of overall: baseline", "None", "0.9"
            ),
        ),
        (_run(status="failed"), Difference("status", "succeeded", "failed")),
    ],
)
def test_differences(rehearsed: RunData, difference: Difference) -> None:
    assert difference in compare_runs(_run(), rehearsed, 0.01)


def test_baseline_that_both_name_differently_is_the_same() -> None:
    local, rehearsed = _run(baseline="run 1"), _run(baseline="run 2")
    assert compare_runs(local, rehearsed, 0.01) == ()
