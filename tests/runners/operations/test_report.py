"""``report``: which run's page is drawn, where, and what an error names."""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runners.operations.report import ReportRequest, report
from runners.operations.status import StatusRequest, status
from sluice.errors import UsageError, WorkspaceError
from sluice.record.run_record import RunRecord
from sluice.storage import local_storage

pytestmark = pytest.mark.unit

Sluice = Callable[..., tuple[int, str, str]]


def test_the_last_run_is_the_default(written: Any) -> None:
    first, last = written.fail(written.FIRST), written.fail(written.SECOND)
    drawn = report(ReportRequest(name="digits"))
    assert (drawn.run_id, drawn.status) == (written.SECOND, "failed")
    assert drawn.report == str(last / "report.html")
    assert f"run {written.SECOND}" in (last / "report.html").read_text("utf-8")
    assert not (first / "report.html").exists()
    earlier = report(ReportRequest(name="digits", run_id=written.FIRST))
    assert earlier.report == str(first / "report.html")
    assert report(ReportRequest()) == drawn


def test_a_killed_run_gets_its_page_from_the_next_command(written: Any) -> None:
    run_dir = written.begin(written.FIRST).run_dir
    status(StatusRequest(name="digits"))
    record = RunRecord.load(run_dir)
    assert (record.status, record.report_uri) == (
        "interrupted",
        str(run_dir / "report.html"),
    )
    assert "Interrupted" in (run_dir / "report.html").read_text("utf-8")


def test_a_run_in_progress(written: Any) -> None:
    with written.workspace.exclusive("sluice run digits"):
        written.begin(written.FIRST)
        drawn = report(ReportRequest(name="digits"))
    assert drawn.status == "running"
    assert "Running: " in Path(drawn.report).read_text("utf-8")


def test_all_runs(written: Any) -> None:
    run_dir = written.fail(written.FIRST)
    report(ReportRequest(name="digits"))
    drawn = report(ReportRequest(name="digits", all_runs=True))
    assert drawn.report == str(run_dir.parents[1] / "index.html")
    page = Path(drawn.report).read_text("utf-8")
    assert f'href="runs/{written.FIRST}/report.html"' in page


def test_without_runs(written: Any) -> None:
    with pytest.raises(UsageError, match="no pipeline has run yet"):
        report(ReportRequest())


def test_a_workspace_that_may_only_be_read(
    written: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    run_dir = written.fail(written.FIRST)
    monkeypatch.setattr(local_storage.LocalStorage, "write_atomically", refuse)
    with pytest.raises(WorkspaceError, match="the report cannot be written") as raised:
        report(ReportRequest(name="digits"))
    assert raised.value.hint == (
        f"write it elsewhere: python -m reports.run_page {run_dir} -o FILE"
    )
    # The page that the run has left.
    (run_dir / "report.html").touch()
    drawn = report(ReportRequest(name="digits"))
    assert drawn.report == str(run_dir / "report.html")


def test_the_verb(
    written: Any, sluice: Sluice, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def no_browser(uri: str) -> bool:
        opened.append(uri)
        return False

    monkeypatch.setattr(webbrowser, "open", no_browser)
    run_dir = written.fail(written.FIRST)
    page = run_dir / "report.html"
    code, out, err = sluice("report", "digits", "--open")
    assert (code, out) == (0, f"{page}\n")
    assert opened == [page.as_uri()] and "no browser was found" in err
    code, out, _ = sluice("report", "--json")
    assert json.loads(out) == {
        "schema_version": 1,
        "pipeline": "digits",
        "run_id": written.FIRST,
        "status": "failed",
        "report": str(page),
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [("--all", "--all needs a NAME"), ("--run 2026", "--run needs the NAME")],
)
def test_options_that_need_a_name(
    written: Any, sluice: Sluice, arguments: str, message: str
) -> None:
    code, _, err = sluice("report", *arguments.split())
    assert code == 2 and message in err
