"""Operations: return the record of a run, or of all runs of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass

from runners.operations.complete_killed_runs import complete_killed_runs
from runners.operations.find_run import (
    Warn,
    all_workspaces,
    find_run,
    find_workspace,
    ignore,
    readable_runs,
)
from runners.operations.pipeline_request import next_command
from sluice.errors import WorkspaceError
from sluice.record.run_record import RunRecord


@dataclass(frozen=True, kw_only=True)
class StatusRequest:
    """The run to return.

    Attributes:
      name: a config's name or path; None for all pipelines that have run.
      run_id: the id of a run, or its beginning; None for the last run.
      workspace_dir: the folder that holds one workspace per pipeline.
    """

    name: str | None = None
    run_id: str | None = None
    workspace_dir: str | None = None


def status(request: StatusRequest, warn: Warn = ignore) -> list[RunRecord]:
    """Returns a run of a pipeline, or the last run of each; completes killed runs.

    Raises:
      UsageError: there is no such pipeline or run.
      WorkspaceError: the record cannot be read.
    """
    if request.name is not None:
        where, run_id = request.workspace_dir, request.run_id
        return [find_run(request.name, where, run_id=run_id, warn=warn).record]
    records = []
    for workspace in all_workspaces(request.workspace_dir):
        complete_killed_runs(workspace)
        if record := next(readable_runs(workspace, warn), None):
            records.append(record)
    return records


def runs(
    name: str, workspace_dir: str | None = None, warn: Warn = ignore
) -> list[RunRecord]:
    """Returns all runs of a pipeline, newest first; killed runs are completed.

    Raises:
      UsageError: there is no such pipeline.
      WorkspaceError: it has runs, but no readable record.
    """
    workspace = find_workspace(name, workspace_dir)
    complete_killed_runs(workspace)
    records = list(readable_runs(workspace, warn))
    if not records and workspace.run_ids():
        raise WorkspaceError(
            f"{name} has run, but none of its records can be read",
            where=workspace.runs,
            hint=next_command("run", name, workspace_dir=workspace_dir),
        )
    return records
