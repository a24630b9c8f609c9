"""Finds a pipeline's workspace and a run in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.config.load import load_config
from runners.operations.complete_killed_runs import complete_killed_runs
from runners.operations.pipeline_request import next_command
from runners.operations.service_runs import import_runs, refresh_runs
from sluice.errors import ExitCode, UsageError, WorkspaceError
from sluice.project import current_project
from sluice.record.load_record import load_record
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace, locate

RESUMABLE = ("failed", "interrupted")
# Names of runs that are no ids.
LATEST, LAST_PUSHED = "latest", "last-pushed"

# Receives a line about what was left out, such as a damaged record.
Warn = Callable[[str], None]


def ignore(_: str) -> None:
    """Drops a warning."""


@dataclass(frozen=True)
class FoundRun:
    """A run and its workspace."""

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
        config = load_config(name)
        return locate(config.root, config.name, workspace_dir)
    except UsageError:
        workspace = locate(current_project(Path.cwd()), name, workspace_dir)
        if not workspace.runs.is_dir():
            raise
        return workspace


def updated_workspace(
    name: str,
    workspace_dir: str | None,
    warn: Warn = ignore,
    *,
    profile: str | None = None,
    overrides: Sequence[str] = (),
) -> Workspace:
    """Returns the workspace of a pipeline, with its records up to date.

    Killed runs are completed, and services are asked about open ones. Where the config
    names a service, its runs are added that the workspace does not have.

    Args:
      name: a config's name or path.
      workspace_dir: the ``--workspace`` option.
      warn: receives a line per service that does not answer.
      profile: an overlay's name.
      overrides: ``KEY=VALUE``.

    Raises:
      UsageError: as ``find_workspace`` does, or there is no such profile.
    """
    workspace = find_workspace(name, workspace_dir)
    update_records(workspace, warn)
    try:
        config = load_config(name, profile=profile, overrides=overrides)
    except UsageError:
        if profile or overrides:
            raise
    else:
        for warning in import_runs(config, workspace):
            warn(warning)
    return workspace


def find_run(
    name: str,
    workspace_dir: str | None = None,
    *,
    workspace: Workspace | None = None,
    run_id: str | None = None,
    warn: Warn = ignore,
) -> FoundRun:
    """Returns a run of a pipeline, by default the last; killed runs are completed.

    If the record of the last run cannot be read, the one before is returned.

    Args:
      name: a config's name or path.
      workspace_dir: the ``--workspace`` option.
      workspace: the pipeline's, if it is known already.
      run_id: which run, or the beginning of its id; ``latest`` for the last,
        ``last-pushed`` for the last that pushed a model.
      warn: receives a line per damaged record.

    Raises:
      UsageError: there is no such run.
      WorkspaceError: its record cannot be read.
    """
    if workspace is None:
        workspace = updated_workspace(name, workspace_dir, warn)
    ids = workspace.run_ids()
    if not ids:
        raise not_run_yet(name, workspace, workspace_dir)
    if run_id == LAST_PUSHED:
        return FoundRun(workspace, _last_pushed(name, workspace, workspace_dir, warn))
    run_id = None if run_id == LATEST else run_id
    matching = [item for item in ids if item.startswith(run_id or "")]
    if not matching or (run_id and len(matching) > 1):
        raise UsageError(
            f"there is no run {run_id!r} of {name}"
            if not matching
            else f"several runs of {name} begin with {run_id!r}",
            where=workspace.runs,
            examples=(matching or ids)[::-1],
            hint=next_command("runs", name, workspace_dir=workspace_dir),
        )
    record = None if run_id else next(readable_runs(workspace, warn), None)
    return FoundRun(workspace, record or load_record(workspace.run_dir(matching[-1])))


def update_records(workspace: Workspace, warn: Warn = ignore) -> None:
    """Completes the records of killed runs, and asks services about open ones."""
    complete_killed_runs(workspace)
    for warning in refresh_runs(workspace):
        warn(warning)


def _last_pushed(
    name: str, workspace: Workspace, workspace_dir: str | None, warn: Warn
) -> RunRecord:
    for record in readable_runs(workspace, warn):
        if record.has_pushed:
            return record
    hint = next_command("runs", name, workspace_dir=workspace_dir)
    raise UsageError(f"no run of {name} has pushed a model", hint=hint)


def not_run_yet(
    name: str, workspace: Workspace, workspace_dir: str | None
) -> UsageError:
    """Returns the error of a command that needs a run, where there is none."""
    hint = next_command("run", name, workspace_dir=workspace_dir)
    return UsageError(f"{name} has not run yet", where=workspace.root, hint=hint)


def readable_runs(workspace: Workspace, warn: Warn = ignore) -> Iterator[RunRecord]:
    """Yields the records of the runs, newest first; warns of unreadable ones."""
    for run_id in reversed(workspace.run_ids()):
        try:
            yield load_record(workspace.run_dir(run_id))
        except WorkspaceError as error:
            warn(f"{error.what}: {error.actual}")


def all_workspaces(workspace_dir: str | None) -> list[Workspace]:
    """Returns the workspaces of all pipelines that have run, by name."""
    base = locate(current_project(Path.cwd()), "any", workspace_dir).root.parent
    folders = sorted(path.parent for path in base.glob("*/workspace.json"))
    return [Workspace(folder) for folder in folders]


def last_real_run(workspace: Workspace, warn: Warn = ignore) -> RunRecord | None:
    """Returns the last run that was neither up to date nor refused for its usage."""
    for record in readable_runs(workspace, warn):
        refused = record.status == "failed" and record.exit_code == ExitCode.USAGE
        if record.status != "up_to_date" and not refused:
            return record
    return None


def newest_resumable(
    workspace_dir: str | None, warn: Warn = ignore
) -> tuple[Workspace, str]:
    """Returns the pipeline with the newest run that can be resumed.

    Returns:
      The workspace and the pipeline's name.

    Raises:
      UsageError: there is no such pipeline.
    """
    found: list[tuple[str, Workspace, str]] = []
    for workspace in all_workspaces(workspace_dir):
        complete_killed_runs(workspace)
        record = last_real_run(workspace, warn)
        if record and record.status in RESUMABLE and record.resume_command:
            found.append((record.run_id, workspace, record.pipeline))
    if not found:
        raise UsageError(
            "there is no failed or interrupted run to resume", hint="sluice status"
        )
    _, workspace, name = max(found, key=lambda item: item[0])
    return workspace, name
