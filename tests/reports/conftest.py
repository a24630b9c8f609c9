"""Runs as the reports read them: records of no run, and one of taxi with documents."""

import json
from pathlib import Path

import pytest

from reports.read_run import RunData
from reports.run_page import render_run
from sluice.record.run_record import RunRecord
from tests.kit.read_page import Page
from tests.kit.runs import a_record
from tests.kit.runs import write_run as write_to

# Record and documents of ``sluice run taxi``, with three of its features.
TAXI = Path(__file__).parent / "taxi_run.json"


@pytest.fixture
def run_with(tmp_path):
    """Makes a run from changes to the record, and ``kind=artifact`` of documents."""

    def make(documents=None, **changes):
        record = a_record(**changes)
        return RunData(write_to(tmp_path / "runs", record, documents), record)

    return make


def _stored(verdict):
    return json.loads(verdict.to_json())


@pytest.fixture
def taxi(tmp_path):
    """The run of taxi; its documents can be changed before they are written."""
    found = json.loads(TAXI.read_text())
    documents = {kind: x["content"] for kind, x in found["documents"].items()}

    def make(change=lambda documents: None, **changes):
        change(documents)
        run_dir = tmp_path / "runs" / changes.get("run_id", found["record"]["run_id"])
        run_dir.mkdir(parents=True)
        content = json.dumps({**found["record"], **changes}, default=_stored)
        (run_dir / "run.json").write_text(content)
        record = RunRecord.load(run_dir)
        return RunData(write_to(run_dir.parent, record, documents), record)

    return make


@pytest.fixture
def page_of():
    """Draws the page of a run, without a notice, and reads it."""

    def draw(run):
        html = render_run(run)
        assert not run.notices
        return Page(html)

    return draw


@pytest.fixture(scope="session")
def write_run():
    """Writes a run that has every document; see ``generated_run``."""
    from tests.reports import generated_run

    return generated_run.write_run
