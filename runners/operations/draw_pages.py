"""Operation: draws the page of a run, or of all runs of a pipeline."""

from __future__ import annotations

from pathlib import Path

from reports.index_page import render_index
from reports.read_run import REPORT_FILE, RunData
from reports.run_page import write_report
from runners.operations.find_run import (
    find_run,
    last_runs,
    not_run_yet,
    readable_runs,
    updated_workspace,
)
from sluice.errors import UsageError
from sluice.record.run_record import RunRecord
from sluice.run_lock import unwritable
from sluice.storage import atomic

_INDEX_FILE = "index.html"


def draw(name: str | None = None, run_id: str | None = None) -> tuple[RunRecord, Path]:
    """Draws the page of a run; by default of the last one, also one in progress.

    Raises:
      UsageError: there is no such pipeline or run.
      WorkspaceError: the record cannot be read, or the page cannot be written.
    """
    if name is not None:
        drawn = find_run(name, run_id)
    elif last := last_runs():
        drawn = max(last, key=lambda item: item.record.run_id)
    else:
        raise UsageError("no pipeline has run yet", hint="sluice run NAME")
    path = drawn.run_dir / REPORT_FILE
    try:
        write_report(drawn.run_dir)
    except OSError as error:
        raise unwritable(path, error) from error
    return drawn.record, path


def draw_all(name: str) -> tuple[str, Path]:
    """Draws the page of all runs, and returns the pipeline's name and the page."""
    workspace = updated_workspace(name)
    if not workspace.run_ids():
        raise not_run_yet(name, workspace)
    runs = [
        RunData(workspace.run_dir(record.run_id), record)
        for record in readable_runs(workspace)
    ]
    path = workspace.root / _INDEX_FILE
    pipeline = workspace.root.name
    try:
        atomic.write_text(path, render_index(pipeline, runs))
    except OSError as error:
        raise unwritable(path, error) from error
    return pipeline, path
