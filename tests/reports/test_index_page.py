"""The page of all runs: a row and a link for each, trends where two have a value."""

import re

import pytest

from reports.index_page import MAX_RUNS, make_index, render_index
from reports.read_run import RunData
from sluice.record.run_record import RunRecord
from tests.kit import protos

pytestmark = pytest.mark.unit


def metrics(value):
    found = {"auc": value, "example_count": 7}
    return {"metrics": protos.evaluation(protos.slice_metrics(found))}


def distances(train):
    """Train against eval is no drift; a limit of 0 has no ratio."""
    comparisons = [
        {
            "check": check,
            "split": "train",
            "features": [
                {"feature": "fare", "distance": distance, "limit": 0.05},
                {"feature": "tips", "distance": 0.0, "limit": 0.0},
            ],
        }
        for check, distance in (("drift", train), ("split_drift", 9.0))
    ]
    return {"distances": {"comparisons": comparisons}}


def test_trends_and_links(run_with):
    old, tags = run_with(metrics(0.8)), {"<b>": ""}
    new = run_with(metrics(0.9), run_id="20260102T000000Z-bbbb", tags=tags)
    (new.run_dir / "report.html").touch()
    page = render_index("digits", [new, old])
    assert 'href="runs/20260102T000000Z-bbbb/report.html"' in page
    assert f'href="runs/{old.record.run_id}' not in page
    assert "auc, over the runs" in page and "example_count" not in page
    assert "Drift" not in page and "Examples, over the runs" not in page
    assert "&lt;b&gt;" in page and "<b>" not in page
    page = render_index("digits", [old])
    assert "Trends" not in page and "1 run<" in page


def test_the_drift_of_a_run_is_its_largest_also_of_one_that_a_gate_stopped(run_with):
    old = run_with(distances(0.01), run_id="a")
    new = run_with(distances(0.06), run_id="b")
    page = render_index("digits", [run_with(run_id="c"), new, old])
    assert "Drift: distance relative to its limit" in page
    assert "0.2000 at 1" in page and "1.200 at 2" in page


def test_a_run_is_at_the_same_place_in_each_chart(run_with):
    first, second = (run_with(metrics(x), run_id=str(x)) for x in (0.8, 0.9))
    index = make_index([run_with(run_id="blocked"), second, first], lambda run: "")
    auc = dict(index["charts"])["auc"]
    assert re.findall(r">(\d)</text>", auc) == ["1", "2", "3"]


def test_only_the_newest_runs_are_read(tmp_path):
    read = []

    def runs():
        for number in range(MAX_RUNS + 5):
            read.append(number)
            record = RunRecord(f"r{number:04d}", "digits", "2026-01-01T00:00:00", "c")
            yield RunData(tmp_path / record.run_id, record)

    page = render_index("digits", runs())
    assert f"The newest {MAX_RUNS} runs." in page
    assert len(read) == MAX_RUNS
