"""The page of all runs: a row and a link for each, trends where two have a value."""

import re
from collections.abc import Callable

import pytest

from reports.index_page import MAX_RUNS, make_index, render_index
from reports.read_run import RunData
from sluice.record.run_record import RunRecord
from tests.kit import protos

pytestmark = pytest.mark.unit

RunWith = Callable[..., RunData]


def metrics(value: float) -> dict:
    found = {"auc": value, "example_count": 7}
    return protos.evaluation(protos.slice_metrics(found))


def distances(**by_split: float) -> dict:
    """The closest feature of each split comes first; train against eval is no drift."""
    return {
        "comparisons": [
            {
                "check": check,
                "split": split,
                "features": [
                    {"feature": "fare", "distance": distance, "limit": 0.05},
                    {"feature": "tips", "distance": 0.0, "limit": 0.0},
                ],
            }
            for check, found in (
                ("drift", by_split),
                ("split_drift", {"train": 9.0}),
            )
            for split, distance in found.items()
        ]
    }


def test_trends_and_links(run_with):
    old = run_with({"metrics": metrics(0.8)})
    new = run_with(
        {"metrics": metrics(0.9)},
        run_id="20260102T000000Z-bbbb",
        tags={"<b>": ""},
    )
    (new.run_dir / "report.html").touch()
    page = render_index("digits", [new, old])
    assert 'href="runs/20260102T000000Z-bbbb/report.html"' in page
    assert f'href="runs/{old.record.run_id}' not in page
    assert "auc, over the runs" in page and "example_count" not in page
    assert "Drift" not in page
    assert "Examples, over the runs" not in page
    assert "&lt;b&gt;" in page and "<b>" not in page


def test_the_drift_of_a_run_is_its_largest_also_of_one_that_a_gate_stopped(run_with):
    old = run_with({"distances": distances(train=0.01, eval=0.0)}, run_id="a")
    new = run_with({"distances": distances(train=0.06, eval=0.0)}, run_id="b")
    page = render_index("digits", [run_with(run_id="c"), new, old])
    assert "Drift: distance relative to its limit" in page
    assert "0.2000 at 1" in page and "1.200 at 2" in page


def test_a_run_is_at_the_same_place_in_each_chart(run_with):
    first, second = (
        run_with({"metrics": metrics(value)}, run_id=str(value)) for value in (0.8, 0.9)
    )
    index = make_index([run_with(run_id="blocked"), second, first], lambda run: "")
    auc = dict(index["charts"])["auc"]
    assert re.findall(r">(\d)</text>", auc) == ["1", "2", "3"]


def test_one_run_has_no_trends(run_with):
    page = render_index("digits", [run_with()])
    assert "Trends" not in page and "1 run<" in page


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
