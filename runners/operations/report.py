"""Operations: draw the page of a run, or the page of all runs of a pipeline."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reports.index_page import render_index
from reports.read_run import RunData
from reports.run_page import REPORT_FILE, write_report
from runners.operations.find_run import (
    FoundRun,
    Warn,
    all_workspaces,
    find_run,
    ignore,
    not_run_yet,
    readable_runs,
    update_records,
    updated_workspace,
)
from sluice.errors import UsageError, WorkspaceError
from sluice.storage import atomic

_INDEX_FILE = "index.html"


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """The page to draw.

    Attributes:
      name: a config's name or path; None for the pipeline that ran last.
      run_id: the id of a run, or its beginning; None for the last run.
      all_runs: whether to draw the page of all runs instead.
      workspace_dir: the folder that holds one workspace per pipeline.
    """

    name: str | None = None
    run_id: str | None = None
    all_runs: bool = False
    workspace_dir: str | None = None


@dataclass(frozen=True)
class Report:
    """A page that was drawn.

    That of all runs has neither ``run_id`` nor ``status``.
    """

    pipeline: str
    run_id: str | None
    status: str | None
    report: str

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {"schema_version": 1, **asdict(self)}


def report(request: ReportRequest, warn: Warn = ignore) -> Report:
    """Draws the page of a run, also of one in progress, or of all runs.

    Raises:
      UsageError: there is no such pipeline or run.
      WorkspaceError: the record cannot be read, or the page cannot be written.
    """
    if request.all_runs:
        return _report_all(request, warn)
    found = _find(request, warn)
    path = found.run_dir / REPORT_FILE
    try:
        write_report(found.run_dir)
    except OSError as error:
        # A workspace that may only be read has the page of the run's end.
        if not path.exists():
            raise _not_written(path, error) from error
    record = found.record
    return Report(record.pipeline, record.run_id, record.status, str(path))


def _find(request: ReportRequest, warn: Warn) -> FoundRun:
    where = request.workspace_dir
    if request.name is not None:
        return find_run(request.name, where, run_id=request.run_id, warn=warn)
    found = []
    for workspace in all_workspaces(where):
        update_records(workspace, warn)
        if record := next(readable_runs(workspace, warn), None):
            found.append(FoundRun(workspace, record))
    if not found:
        raise UsageError("no pipeline has run yet", hint="sluice run NAME")
    return max(found, key=lambda item: item.record.run_id)


def _report_all(request: ReportRequest, warn: Warn) -> Report:
    assert request.name is not None
    workspace = updated_workspace(request.name, request.workspace_dir, warn)
    if not workspace.run_ids():
        raise not_run_yet(request.name, workspace, request.workspace_dir)
    runs = [
        RunData(workspace.run_dir(record.run_id), record)
        for record in readable_runs(workspace, warn)
    ]
    path = workspace.root / _INDEX_FILE
    pipeline = workspace.root.name
    try:
        atomic.write_text(path, render_index(pipeline, runs))
    except OSError as error:
        raise _not_written(path, error) from error
    return Report(pipeline, None, None, str(path))


def _not_written(path: Path, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        "the report cannot be written",
        where=path,
        actual=error.strerror or str(error),
        hint=f"write it elsewhere: python -m reports.run_page {path.parent} -o FILE",
    )
