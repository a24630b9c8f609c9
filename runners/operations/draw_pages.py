"""Operation: draws the page of a run."""

from __future__ import annotations

from pathlib import Path

from reports.read_run import REPORT_FILE
from reports.run_page import write_report
from runners.operations.find_run import find_run, last_runs
from sluice.errors import UsageError
from sluice.record.run_record import RunRecord
from sluice.run_lock import unwritable


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
