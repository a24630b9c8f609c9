"""Operation: what differs between two runs."""

from __future__ import annotations

from pathlib import Path

from reports.compare import Comparison, compare
from reports.read_run import RunData, last_pushed
from runners.operations.find_run import LATEST, find_run
from sluice.errors import UsageError
from sluice.record.run_record import RunRecord
from sluice.workspace import next_command


def compare_runs(
    name: str, before: str | None = None, after: str | None = None
) -> Comparison:
    """Returns what differs between two runs; see ``Comparison.runs`` for notices.

    Args:
      name: of the pipeline.
      before: a run's id or the beginning of it, ``latest``, ``last-pushed`` or a folder
        of a run; None for the last run before the other one that pushed a model.
      after: the same; None for the last run.

    Raises:
      UsageError: there is no such pipeline or run.
      WorkspaceError: a record cannot be read.
    """
    new = _read(name, after or LATEST)
    old = _read(name, before) if before else last_pushed(new)
    if old is None:
        raise UsageError(
            f"no run before {new.record.run_id} has pushed a model",
            hint=next_command("runs", name),
        )
    return compare(old, new)


def _read(name: str, run: str) -> RunData:
    if "/" in run:
        run_dir = Path(run).resolve()
        return RunData(run_dir, RunRecord.load(run_dir))
    found = find_run(name, run)
    return RunData(found.run_dir, found.record)
