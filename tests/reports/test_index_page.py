"""The page of all runs: of many only the newest."""

import pytest

from reports.index_page import MAX_RUNS, render_index
from reports.read_run import RunData
from sluice.record.run_record import RunRecord

pytestmark = pytest.mark.unit


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
