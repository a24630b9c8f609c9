"""``sluice report``: draws the page of a run, or of all runs of a pipeline."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from reports.index_page import render_index
from reports.read_run import REPORT_FILE, RunData
from reports.run_page import write_report
from runners.cli.echo import echo
from runners.cli.options import Result, run_option, verb
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


@verb()
@click.argument("name", required=False)
@run_option
@click.option(
    "--all",
    "all_runs",
    is_flag=True,
    help="The page of all runs of NAME, with trends and a link to each report.",
)
def report(name: str | None, run_id: str | None, all_runs: bool) -> Result:
    """Draw the page of the last run of NAME, or of the pipeline that ran last.

    Each run has its page already, report.html in its folder; this draws it again, also
    that of a run in progress, and prints where it is.
    """
    if (name is None and (all_runs or run_id)) or (all_runs and run_id):
        raise click.UsageError("--all and --run need a NAME, and exclude each other.")
    record = None
    if name is not None and all_runs:
        pipeline, page = draw_all(name)
    else:
        record, page = draw(name, run_id)
        pipeline = record.pipeline
    facts = {
        "pipeline": pipeline,
        "run_id": record and record.run_id,
        "status": record and record.status,
        "report": str(page),
    }
    return Result(facts, partial(echo, str(page)))


def draw(name: str | None = None, run_id: str | None = None) -> tuple[RunRecord, Path]:
    """Draws the page of a run; by default of the last one, also one in progress.

    Raises:
      UsageError: there is no such pipeline or run.
      WorkspaceError: the record cannot be read, or the page cannot be written.
    """
    if name is not None:
        found = find_run(name, run_id)
    elif last := last_runs():
        found = max(last, key=lambda item: item.record.run_id)
    else:
        raise UsageError("no pipeline has run yet", hint="sluice run NAME")
    path = found.run_dir / REPORT_FILE
    try:
        write_report(found.run_dir)
    except OSError as error:
        raise unwritable(path, error) from error
    return found.record, path


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
