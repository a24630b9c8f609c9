"""The page of a run at its end: written, or a note; the run never fails."""

import pytest

from runners.local.write_report import write_report
from sluice.record.run_record import RunRecord

pytestmark = pytest.mark.unit


@pytest.fixture
def record(tmp_path):
    record = RunRecord("20260101T000000Z-aaaa", "digits")
    record.end()
    record.save(tmp_path)
    return record


def test_a_page_that_cannot_be_drawn_is_a_note(record, tmp_path, monkeypatch):
    def fail(run_dir):
        raise RuntimeError("no ink")

    monkeypatch.setattr("reports.run_page.write_report", fail)
    write_report(record, tmp_path)
    (note,) = RunRecord.load(tmp_path).notes
    assert note == "the report could not be written: RuntimeError: no ink"
