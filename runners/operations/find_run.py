"""Finds a pipeline's workspace and a run in it.

Records that cannot be read are left out with a warning in the log ``sluice``, which the
command line prints.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runners.cloud.submitted_job import is_service_run
from sluice.errors import UsageError, WorkspaceError
from sluice.project import current_project
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace, locate, next_command

if TYPE_CHECKING:
    from pipeline.config.config import Config

RESUMABLE = ("failed", "interrupted")
# Names of runs that are no ids.
LATEST, LAST_PUSHED = "latest", "last-pushed"
_log = logging.getLogger("sluice")


@dataclass(frozen=True)
class FoundRun:
    """A run and its workspace."""

    workspace: Workspace
    record: RunRecord

    @property
    def name(self) -> str:
        """The pipeline's name, as in the path of its workspace."""
        return self.workspace.root.name

    @property
    def run_dir(self) -> Path:
        return self.workspace.run_dir(self.record.run_id)


def find_workspace(name: str) -> Workspace:
    """Returns the workspace of a pipeline, also of one whose config is broken now.

    ``name`` is a config's name or path.

    Raises:
      UsageError: there is no such config, nor a workspace of that name.
    """
    return _find_workspace(name)[0]


def _find_workspace(
    name: str, profile: str | None = None, overrides: Sequence[str] = ()
) -> tuple[Workspace, Config | None]:
    from pipeline.config.load import load_config

    try:
        config = load_config(name, profile=profile, overrides=overrides)
    except UsageError:
        workspace = locate(current_project(Path.cwd()), name)
        if profile or overrides or not workspace.runs.is_dir():
            raise
        return workspace, None
    return workspace_of(config), config


def updated_workspace(
    name: str, profile: str | None = None, overrides: Sequence[str] = ()
) -> Workspace:
    """Returns the workspace of a pipeline, with its records up to date.

    Services are asked about open runs. Where the config names a service, its runs are
    added that the workspace does not have.

    Raises:
      UsageError: as ``find_workspace`` does, or there is no such profile.
    """
    workspace, config = _find_workspace(name, profile, overrides)
    update_records(workspace)
    if config and config.cloud and config.cloud.engine == "vertex":
        from runners.cloud.refresh import import_runs

        for warning in import_runs(config, workspace):
            _log.warning(warning)
    return workspace


def update_records(workspace: Workspace) -> None:
    """Asks services about their open runs."""
    if any(is_service_run(workspace.run_dir(name)) for name in workspace.run_ids()):
        from runners.cloud.refresh import refresh_runs

        for warning in refresh_runs(workspace):
            _log.warning(warning)


def find_run(
    name: str, run_id: str | None = None, workspace: Workspace | None = None
) -> FoundRun:
    """Returns a run of a pipeline, by default the last whose record can be read.

    Args:
      name: a config's name or path.
      run_id: which run, or the beginning of its id; ``latest`` for the last,
        ``last-pushed`` for the last that pushed a model.
      workspace: the pipeline's, if it is known already and up to date.

    Raises:
      UsageError: there is no such run.
      WorkspaceError: its record cannot be read.
    """
    workspace = workspace or updated_workspace(name)
    ids = workspace.run_ids()
    if not ids:
        raise not_run_yet(name, workspace)
    list_them = next_command("runs", name)
    if run_id == LAST_PUSHED:
        pushed = (x for x in readable_runs(workspace) if x.has_pushed)
        if record := next(pushed, None):
            return FoundRun(workspace, record)
        raise UsageError(f"no run of {name} has pushed a model", hint=list_them)
    if run_id is None or run_id == LATEST:
        record = next(readable_runs(workspace), None)
        return FoundRun(workspace, record or read_record(workspace, ids[-1]))
    matching = [item for item in ids if run_id and item.startswith(run_id)]
    if len(matching) == 1:
        return FoundRun(workspace, read_record(workspace, matching[0]))
    raise UsageError(
        f"several runs of {name} begin with {run_id!r}"
        if matching
        else f"there is no run {run_id!r} of {name}",
        where=workspace.runs,
        examples=(matching or ids)[::-1],
        hint=list_them,
    )


def read_record(workspace: Workspace, run_id: str) -> RunRecord:
    """Returns the record of a run; one whose process was killed is interrupted.

    Nothing is written: that is left to the next run.

    Raises:
      WorkspaceError: it cannot be read.
    """
    run_dir = workspace.run_dir(run_id)
    if is_service_run(run_dir) or workspace.is_running():
        return RunRecord.load(run_dir)
    record = RunRecord.load_ended(run_dir)
    if record.status == "interrupted" and record.exit_code is None:
        record.resume_command = resume_command(record)
    return record


def resume_command(record: RunRecord) -> str | None:
    """Returns the command that resumes a run of this machine; None of a dry run."""
    if record.options.dry_run:
        return None
    return next_command("resume", record.pipeline, "--run", record.run_id)


def local_run_ids(workspace: Workspace) -> Iterator[str]:
    """Yields the ids of the runs of this machine, newest first."""
    ids = reversed(workspace.run_ids())
    return (x for x in ids if not is_service_run(workspace.run_dir(x)))


def not_run_yet(name: str, workspace: Workspace) -> UsageError:
    """Returns the error of a command that needs a run, where there is none."""
    hint = next_command("run", name)
    return UsageError(f"{name} has not run yet", where=workspace.root, hint=hint)


def readable_runs(workspace: Workspace) -> Iterator[RunRecord]:
    """Yields the records of the runs, newest first; warns of unreadable ones."""
    for run_id in reversed(workspace.run_ids()):
        try:
            yield read_record(workspace, run_id)
        except WorkspaceError as error:
            _log.warning(f"{error.what}: {error.actual}")


def all_workspaces() -> list[Workspace]:
    """Returns the workspaces of all pipelines that have run, by name."""
    base = locate(current_project(Path.cwd()), "any").root.parent
    folders = sorted(path.parent for path in base.glob("*/runs"))
    return [Workspace(folder) for folder in folders]


def last_runs() -> list[FoundRun]:
    """Returns the last run of every pipeline that has run, by name."""
    found = []
    for workspace in all_workspaces():
        update_records(workspace)
        if record := next(readable_runs(workspace), None):
            found.append(FoundRun(workspace, record))
    return found


def last_real_run(workspace: Workspace) -> RunRecord | None:
    """Returns the last run that was neither up to date, refused at once, nor dry."""
    for record in readable_runs(workspace):
        is_dry = record.options.dry_run
        if not (is_dry or record.was_refused or record.status == "up_to_date"):
            return record
    return None


def newest_resumable() -> tuple[Workspace, str]:
    """Returns workspace and name of the pipeline with the newest run to resume.

    Raises:
      UsageError: there is no such pipeline.
    """
    resumable: list[tuple[str, Workspace, str]] = []
    for workspace in all_workspaces():
        record = last_real_run(workspace)
        if record and record.status in RESUMABLE and record.resume_command:
            resumable.append((record.run_id, workspace, record.pipeline))
    if not resumable:
        raise UsageError(
            "there is no failed or interrupted run to resume", hint="sluice status"
        )
    _, workspace, name = max(resumable, key=lambda item: item[0])
    return workspace, name


def config_words(config: Config) -> list[str]:
    """Returns NAME and the options that load the same config in another command."""
    origin = config.origin
    file = Path(origin.file)
    name = file.stem if file.parent.name == "configs" else origin.file
    profile = ["--profile", Path(origin.profile).stem] if origin.profile else []
    sets = [word for item in origin.overrides for word in ("--set", item)]
    return [name, *profile, *sets]


def workspace_of(config: Config) -> Workspace:
    """Returns the workspace of a config's pipeline."""
    return locate(config.root, config.name)


def serving_dir_of(config: Config) -> str:
    """Returns the serving directory, where versions of the model are pushed."""
    return config.serving_dir or str(workspace_of(config).serving)


def published_in(config: Config) -> str:
    """Returns where versions are read: those of a service, if the config has one.

    That is ``<cloud.root>/<name>/serving``, unless ``push.serving_dir`` is remote.
    """
    if config.cloud is None or config.cloud.root is None:
        return serving_dir_of(config)
    from runners.cloud.job_inputs import cloud_locations

    return str(cloud_locations(config).serving_dir)
