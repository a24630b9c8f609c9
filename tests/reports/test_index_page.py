"""The page of all runs: a row and a link for each, trends where two have a value."""

import pytest

from reports.index_page import MAX_RUNS, make_index, render_index
from reports.read_run import RunData
from sluice.record.run_record import RunRecord
from tests.kit import protos
from tests.kit.read_page import Page

pytestmark = pytest.mark.unit


def metrics(value):
    found = {"auc": value, "example_count": 7}
    return {"metrics": protos.evaluation(protos.slice_metrics(found))}


def epochs(*losses):
    numbers = [*range(1, len(losses) + 1)]
    return {"epochs": {"epochs": numbers, "metrics": {"val_loss": losses}}}


def test_losses_of_the_newest_six_trainings_are_in_one_chart(run_with):
    """A run that took the training of another from the cache has no line of its own."""
    runs = [run_with(epochs(1.0, 0.1 * i), run_id=f"r{i}") for i in range(1, 9)]
    again = run_with(epochs(1.0, 0.8), run_id="r9")
    losses = make_index([again, *runs[::-1]], lambda run: None)["losses"]
    assert losses["runs"] == ["r9", "r7", "r6", "r5", "r4", "r3"]
    assert "r9: from 1 to 0.8000" in losses["chart"] and "r2:" not in losses["chart"]
    page = Page(render_index("digits", [again, *runs[::-1]]))
    boxes = [x for tag, x in page.elements if x.get("type") == "checkbox"]
    assert [box["value"] for box in boxes] == [*"012345"]
    assert make_index([again, runs[7]], lambda run: None)["losses"] is None


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
