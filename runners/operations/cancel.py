"""Stops the run in progress, as Ctrl-C does."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from pipeline.config.serialize import read_stored_config
from runners.cloud.submitted_job import SubmittedJob, is_service_run
from runners.operations.find_run import find_workspace, updated_workspace
from runners.operations.pipeline_request import next_command
from sluice.errors import UsageError
from sluice.run_lock import owner_of
from sluice.workspace import Workspace


@dataclass(frozen=True)
class Cancelled:
    """What was asked to stop.

    Attributes:
      command: the command line of the run.
      pid: the process that was signalled; None for a run in a service.
      job: the job that the service was asked to cancel; None for a local run.
      started_jobs: jobs that its tasks have started, and that are cancelled too.
      warning: which jobs may go on, with the commands to end them; None if none.
    """

    command: str
    pid: int | None = None
    job: str | None = None
    started_jobs: tuple[str, ...] = ()
    warning: str | None = None


def cancel(name: str, run_id: str | None = None) -> Cancelled:
    """Sends SIGINT to the process of a run, or cancels its job in the service.

    Args:
      name: a config's name or path.
      run_id: of the run, or its beginning; None for the one in progress.

    Raises:
      UsageError: no such run is in progress, or it is one of another machine, or
        several are in progress in the service and none is named.
      RemoteError: the service refuses or does not answer.
    """
    workspace = find_workspace(name)
    owner = owner_of(workspace.lock_file)
    if owner is None or (run_id and not _newest_local(workspace).startswith(run_id)):
        return _cancel_job(_find_open(name, run_id))
    if not owner.is_here:
        raise UsageError(
            f"the run of {name} has no process on this machine to stop",
            where=workspace.lock_file,
            actual=str(owner),
            hint=f"the same command on {owner.host}",
        )
    os.kill(owner.pid, signal.SIGINT)
    return Cancelled(owner.command, owner.pid)


def _newest_local(workspace: Workspace) -> str:
    """Returns the id of the newest run of this machine, or ""."""
    ids = reversed(workspace.run_ids())
    local = (x for x in ids if not is_service_run(workspace.run_dir(x)))
    return next(local, "")


def _find_open(name: str, run_id: str | None) -> Path:
    """Returns the folder of the run in a service that is meant."""
    from runners.cloud.refresh import open_service_runs

    workspace = updated_workspace(name)
    open_runs = open_service_runs(workspace)
    found = [run for run in open_runs if run.name.startswith(run_id or "")]
    if len(found) == 1:
        return found[0]
    text, words = f"no run of {name} is in progress", ["runs", name]
    if found:
        # Others may be those of a schedule or of another machine.
        text = f"several runs of {name} are in progress"
        words = ["cancel", name, "--run", "ID"]
    elif run_id:
        text = f"run {run_id!r} of {name} is not in progress"
    raise UsageError(
        text,
        where=workspace.root,
        examples=[run.name for run in found or open_runs],
        hint=next_command(*words),
    )


def _cancel_job(run_dir: Path) -> Cancelled:
    """Asks the service to cancel the job of a run."""
    # The client takes a second to import.
    from runners.cloud.refresh import refresh
    from runners.vertex.client import service_of

    config = read_stored_config(run_dir / "config.json")
    service, submitted = service_of(config), SubmittedJob.load(run_dir)
    started = service.cancel(submitted.name)
    command, warning = refresh(run_dir, service).command, None
    if config.cloud and config.cloud.beam.runner == "dataflow":
        # Their labels name the pipeline, but not the run.
        place = f"--project={config.cloud.project} --region={config.cloud.region}"
        warning = (
            f"jobs on Dataflow may go on: gcloud dataflow jobs list {place} "
            f"--status=active; gcloud dataflow jobs cancel JOB_ID {place}"
        )
    return Cancelled(command, None, submitted.name, tuple(started), warning)
