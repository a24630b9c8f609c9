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
    top: str = "a",
    domain: str = "[0, 1]",
    baseline: float | str | None = None,
    limits: tuple[str, ...] = (">= 0.9",),
    seen: str = "3 features compared",
    passed: bool = True,
    status: Any = "succeeded",
    measured: bool = True,
) -> RunData:
    model = [
        Check("accuracy", "overall", limit, baseline, accuracy, passed)
        for limit in limits
    ]
    data = Check("drift", "train", None, None, seen, True, "of this run")
    record = RunRecord(
        "r",
        "digits",
        "2026-01-01",
        "sluice",
        status=status,
        gates=[
            Verdict("data", (data,)).to_dict(),
            Verdict("model", tuple(model)).to_dict(),
        ],
    )
    feature = {
        "name": "x",
        "type": "FLOAT",
        "string": {"top_values": [{"value": top, "count": 3}, {"value": "z"}]},
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
        "metrics": {"metrics": [metric] if measured else []},
        "schema": {"features": [{"name": "x", "type": "FLOAT", "domain": domain}]},
    }
    record.documents = [DocumentRecord(kind, "Node", kind, "") for kind in content]
    documents: dict[str, dict[str, Any] | None] = {
        kind: {"node": "Node", "artifacts": [item]} for kind, item in content.items()
    }

    return RunData(Path(), record, _documents=documents)


def test_same_runs() -> None:
    assert compare_runs(_run(), _run(1.0 + 1e-9, 0.971), 0.01) == ()


@pytest.mark.parametrize(
    ("rehearsed", "differences"),
    [
        (_run(mean=1.1), [("statistics: x of train.numeric.mean", "1.0", "1.1")]),
        (
            _run(top="b"),
            [("statistics: x of train.string.top_values[0].value", "a", "b")],
        ),
        (_run(domain="[0, 2]"), [("schema: x.domain", "[0, 1]", "[0, 2]")]),
        (
            _run(accuracy=0.95),
            [
                ("verdict: model gate, accuracy of overall.actual", "0.97", "0.95"),
                ("metrics: accuracy of overall", "0.97", "0.95"),
            ],
        ),
        (_run(measured=False), [("metrics: accuracy of overall", "0.97", "None")]),
        (
            _run(passed=False),
            [("verdict: model gate, accuracy of overall.result", "pass", "FAIL")],
        ),
        (
            _run(baseline=0.9),
            [("verdict: model gate, accuracy of overall.baseline", "None", "0.9")],
        ),
        (
            _run(limits=(">= 0.8",)),
            [("verdict: model gate, accuracy of overall.limit", ">= 0.9", ">= 0.8")],
        ),
        (
            _run(seen="2 features compared"),
            [
                (
                    "verdict: data gate, drift of train.actual",
                    "3 features compared",
                    "2 features compared",
                )
            ],
        ),
        (_run(status="failed"), [("status", "succeeded", "failed")]),
    ],
)
def test_differences(
    rehearsed: RunData, differences: list[tuple[str, str, str]]
) -> None:
    expected = tuple(Difference(*item) for item in differences)
    assert compare_runs(_run(), rehearsed, 0.01) == expected


def test_every_limit_of_a_metric_is_compared() -> None:
    """Found: of two rows of one metric only the last was."""
    local = _run(limits=(">= 0.9", "absolute >= -0.05"))
    rehearsed = _run(limits=(">= 0.8", "absolute >= -0.05"))
    (found,) = compare_runs(local, rehearsed, 0.01)
    assert found.what == "verdict: model gate, accuracy of overall[0].limit"


@pytest.mark.parametrize(
    ("local", "rehearsed"),
    [
        (
            "version 2 (artifact 12 of run 20260101T000000Z-abcd)",
            "gs://bucket/sluice/digits/1/job/Trainer_x/model",
        ),
        ("/home/me/data/train-0: 3 records", "gs://bucket/data/train-0: 3 records"),
        ("20260101T000000Z-abcd", "20260102T000000Z-1234"),
    ],
)
def test_names_of_the_same_thing_are_the_same(local: str, rehearsed: str) -> None:
    assert compare_runs(_run(seen=local), _run(seen=rehearsed), 0.01) == ()
