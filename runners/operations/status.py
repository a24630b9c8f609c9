"""Operations: return the record of a run, of all runs, or a table of runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from reports.read_run import RunData
from reports.run_table import RunTable, make_run_table
from runners.operations.find_run import (
    Warn,
    all_workspaces,
    find_run,
    ignore,
    readable_runs,
    update_records,
    updated_workspace,
)
from runners.operations.pipeline_request import next_command
from sluice.errors import WorkspaceError
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace


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
        update_records(workspace, warn)
        if record := next(readable_runs(workspace, warn), None):
            records.append(record)
    return records


@dataclass(frozen=True, kw_only=True)
class RunsRequest:
    """The runs to list.

    Attributes:
      name: a config's name or path.
      workspace_dir: the folder that holds one workspace per pipeline.
      sort: what to sort by, see ``reports.run_table.make_run_table``; None for the
        newest first.
      reverse: whether to turn the order around.
      limit: the number of runs; None for all.
      profile: an overlay's name; one that names a service adds its runs.
      overrides: ``KEY=VALUE``, likewise.
      tag: ``KEY`` or ``KEY=VALUE``, which the runs must have; None for all runs.
    """

    name: str
    workspace_dir: str | None = None
    sort: str | None = None
    reverse: bool = False
    limit: int | None = None
    profile: str | None = None
    overrides: tuple[str, ...] = ()
    tag: str | None = None


def runs(
    name: str, workspace_dir: str | None = None, warn: Warn = ignore
) -> list[RunRecord]:
    """Returns all runs of a pipeline, newest first; killed runs are completed.

    Raises:
      UsageError: there is no such pipeline.
      WorkspaceError: it has runs, but no readable record.
    """
    workspace = updated_workspace(name, workspace_dir, warn)
    return list(_readable(workspace, name, workspace_dir, warn))


def list_runs(request: RunsRequest, warn: Warn = ignore) -> RunTable:
    """Returns the runs of a pipeline with metrics and the parameters that differ.

    Raises:
      UsageError: there is no such pipeline, or no run has a value to sort by.
      WorkspaceError: it has runs, but no readable record.
    """
    workspace = updated_workspace(
        request.name,
        request.workspace_dir,
        warn,
        profile=request.profile,
        overrides=request.overrides,
    )
    records = _readable(workspace, request.name, request.workspace_dir, warn)
    if request.tag is not None:
        key, _, value = request.tag.partition("=")
        wanted = value if "=" in request.tag else None
        records = (
            record
            for record in records
            if key in record.tags and wanted in (None, record.tags[key])
        )
    needs_all = bool(request.sort or request.reverse or request.tag)
    if not needs_all:
        # Only those that are listed are read.
        records = islice(records, request.limit)
    found = [RunData(workspace.run_dir(item.run_id), item) for item in records]
    table = make_run_table(
        found, sort=request.sort, reverse=request.reverse, limit=request.limit
    )
    for notice in (notice for run in found for notice in run.notices):
        warn(notice)
    if not needs_all and len(table.rows) == request.limit:
        return replace(table, left_out=len(workspace.run_ids()) - len(table.rows))
    return table


def _readable(
    workspace: Workspace, name: str, workspace_dir: str | None, warn: Warn
) -> Iterator[RunRecord]:
    is_empty = True
    for record in readable_runs(workspace, warn):
        is_empty = False
        yield record
    if is_empty and workspace.run_ids():
        raise WorkspaceError(
            f"{name} has run, but none of its records can be read",
            where=workspace.runs,
            hint=next_command("run", name, workspace_dir=workspace_dir),
        )
