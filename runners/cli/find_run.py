"""Finds a pipeline's workspace and a run in it, for verbs that only look back."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from pipeline.load_config import load_config
from runners.cli.options import workspace_of
from runners.local.complete_runs import complete_killed_runs
from sluice.errors import UsageError, WorkspaceError
from sluice.project import find_root
from sluice.run_record import RunRecord
from sluice.workspace import Workspace, locate


@dataclass(frozen=True)
class FoundRun:
    """A run and where it lies."""

    workspace: Workspace
    record: RunRecord

    @property
    def run_dir(self) -> Path:
        return self.workspace.run_dir(self.record.run_id)


def find_workspace(name: str, workspace_dir: str | None) -> Workspace:
    """Returns the workspace of a pipeline, also of one whose config is broken now.

    Args:
      name: a config's name or path.
      workspace_dir: the ``--workspace`` option.

    Raises:
      UsageError: there is no such config, nor a workspace of that name.
    """
    try:
        return workspace_of(load_config(name), workspace_dir)
    except UsageError:
        try:
            workspace = locate(find_root(Path.cwd()), name, workspace_dir)
        except UsageError:
            workspace = None
        if workspace is None or not workspace.runs.is_dir():
            raise
        return workspace


def find_run(
    name: str,
    workspace_dir: str | None = None,
    *,
    workspace: Workspace | None = None,
    run_id: str | None = None,
) -> FoundRun:
    """Returns a run of a pipeline, by default its last; killed runs are completed.

    Args:
      name: a config's name or path.
      workspace_dir: the ``--workspace`` option.
      workspace: the pipeline's, where it is known already.
      run_id: which run, or the beginning of its id.

    Raises:
      UsageError: there is no such run.
      WorkspaceError: its record is damaged.
    """
    if workspace is None:
        workspace = find_workspace(name, workspace_dir)
        complete_killed_runs(workspace)
    ids = workspace.run_ids()
    if not ids:
        raise UsageError(
            f"{name} has not run yet", where=workspace.root, hint=f"sluice run {name}"
        )
    matching = [item for item in ids if item.startswith(run_id or "")]
    if not matching or (run_id and len(matching) > 1):
        raise UsageError(
            f"there is no run {run_id!r} of {name}"
            if not matching
            else f"several runs of {name} begin with {run_id!r}",
            where=workspace.runs,
            examples=(matching or ids)[::-1],
            hint=f"sluice runs {name}",
        )
    return FoundRun(workspace, load_run(workspace, matching[-1]))


def load_run(workspace: Workspace, run_id: str) -> RunRecord:
    """Returns the record of a run.

    Raises:
      WorkspaceError: it is damaged.
    """
    run_dir = workspace.run_dir(run_id)
    try:
        return RunRecord.load(run_dir)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WorkspaceError(
            f"the record of run {run_id} cannot be read",
            where=run_dir / "run.json",
            actual=str(error),
        ) from error


def all_workspaces(workspace_dir: str | None) -> list[Workspace]:
    """Returns the workspaces of all pipelines that have run, by name.

    Raises:
      UsageError: this is not inside a project, and no folder was named.
    """
    if workspace_dir or os.environ.get("SLUICE_WORKSPACE"):
        root = Path.cwd()
    else:
        root = find_root(Path.cwd())
    base = locate(root, "any", workspace_dir).root.parent
    folders = sorted(path.parent for path in base.glob("*/workspace.json"))
    return [Workspace(folder) for folder in folders]


def newest_run(
    workspace_dir: str | None, statuses: Collection[str]
) -> tuple[Workspace, str]:
    """Returns the workspace whose newest run with one of ``statuses`` is the newest.

    Returns:
      The workspace and the name that the pipeline's commands take.

    Raises:
      UsageError: there is no such run.
    """
    found: list[tuple[str, Workspace, str]] = []
    for workspace in all_workspaces(workspace_dir):
        complete_killed_runs(workspace)
        for run_id in workspace.run_ids():
            record = load_run(workspace, run_id)
            if record.status in statuses:
                found.append((run_id, workspace, record.pipeline))
    if not found:
        raise UsageError(
            "no run has " + " or ".join(statuses),
            hint="sluice status",
        )
    _, workspace, name = max(found, key=lambda item: item[0])
    return workspace, name
