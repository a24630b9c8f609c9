"""The page of all runs: a row and a link for each, trends where two have a value."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reports.index_page import MAX_RUNS, render_index
from reports.read_run import RunData
from sluice.record.run_record import RunRecord
from sluice.record.verdict import Check, Verdict

pytestmark = pytest.mark.unit

RunWith = Callable[..., RunData]


def metrics(value: float) -> dict:
    row = {
        "slice": {},
        "compared_with": None,
        "model": "candidate",
        "output": "",
        "sub_key": {},
        "aggregation": None,
        "change": False,
        "metrics": {"auc": value, "example_count": 7},
    }
    return {"metrics": [row], "plots": []}


def drift(distance: str) -> dict:
    row = Check(
        "drift since the data accepted last",
        "train",
        "as in the schema",
        "span 1",
        "1 feature compared",
        True,
        f"'fare' is closest to its limit: Jensen-Shannon {distance} of 0.05",
    )
    return Verdict("data", (row,)).to_dict()


def test_trends_and_links(run_with: RunWith) -> None:
    old = run_with({"metrics": metrics(0.8)}, gates=[drift("0.01")])
    new = run_with(
        {"metrics": metrics(0.9)},
        run_id="20260102T000000Z-bbbb",
        gates=[drift("2.5e-02")],
        tags={"<b>": ""},
    )
    (new.run_dir / "report.html").touch()
    page = render_index("digits", [new, old])
    assert 'href="runs/20260102T000000Z-bbbb/report.html"' in page
    assert f'href="runs/{old.record.run_id}' not in page
    assert "auc, over the runs" in page and "example_count" not in page
    assert "Drift: distance in parts of its limit" in page and "0.5" in page
    assert "Examples, over the runs" not in page
    assert "&lt;b&gt;" in page and "<b>" not in page


def test_one_run_has_no_trends(run_with: RunWith) -> None:
    page = render_index("digits", [run_with()])
    assert "Trends" not in page and "1 run<" in page


def test_only_the_newest_runs_are_read(tmp_path) -> None:
    read = []

    def runs():
        for number in range(MAX_RUNS + 5):
            read.append(number)
            record = RunRecord(f"r{number:04d}", "digits", "2026-01-01T00:00:00", "c")
            yield RunData(tmp_path / record.run_id, record)

    page = render_index("digits", runs())
    assert f"The newest {MAX_RUNS} runs." in page
    assert len(read) == MAX_RUNS + 1
