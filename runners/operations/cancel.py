"""Operation: stops the run in progress, as Ctrl-C does."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline.config.serialize import read_stored_config
from runners.cloud.refresh import refresh
from runners.cloud.submitted_job import SubmittedJob
from runners.operations.find_run import find_workspace, updated_workspace
from runners.operations.pipeline_request import next_command
from runners.operations.service_runs import open_service_runs, service_of
from runners.operations.shared_run import (
    end_cancelled_run,
    mark_cancelled,
    running_nodes,
)
from sluice.errors import UsageError
from sluice.run_lock import Owner, cancel_command, owner_of
from sluice.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class CancelRequest:
    """The pipeline whose run is stopped.

    Attributes:
      name: a config's name or path.
      run_id: of a run in a service, or its beginning; None for the one in progress.
      workspace_dir: as for ``PipelineRequest``.
    """

    name: str
    run_id: str | None = None
    workspace_dir: str | None = None


@dataclass(frozen=True)
class Cancelled:
    """The processes that were signalled.

    Attributes:
      command: the command line of the run.
      pids: of the processes; empty for a shared run of which no node runs.
      ended: whether the run has ended already.
      job: the job that a service was asked to cancel; None for a run of this machine.
      started_jobs: jobs that its tasks have started, and that are cancelled too.
      warning: which jobs may go on, with the commands to end them; None if none.
    """

    command: str
    pids: tuple[int, ...]
    ended: bool
    job: str | None = None
    started_jobs: tuple[str, ...] = ()
    warning: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {"schema_version": 1, **asdict(self)}


def cancel(request: CancelRequest) -> Cancelled:
    """Sends SIGINT to the process of a run; a second call kills its nodes.

    A shared run ends with the last of its nodes that run now. A run in a service is
    cancelled there, if it is named or none of this machine is in progress.

    Raises:
      UsageError: no run is in progress, or it is one of another machine, or several
        are in progress in the service and none is named.
      RemoteError: the service refuses or does not answer.
    """
    workspace = find_workspace(request.name, request.workspace_dir)
    owner = owner_of(workspace.lock_file)
    if request.run_id or owner is None or owner.brief:
        return _cancel_job(_find_open(request, workspace))
    if owner.shared_run:
        return _cancel_shared(workspace, owner, owner.shared_run)
    if not owner.is_here or owner.pid is None or not owner.is_alive:
        raise UsageError(
            f"the run of {request.name} has no process on this machine to stop",
            where=workspace.lock_file,
            actual=str(owner),
            hint=f"{cancel_command(workspace.lock_file)}, on {owner.host}"
            if not owner.is_here
            else "wait: its last processes are ending",
        )
    os.kill(owner.pid, signal.SIGINT)
    return Cancelled(owner.command or "", (owner.pid,), ended=False)


def _find_open(request: CancelRequest, workspace: Workspace) -> Path:
    """Returns the folder of the run in a service that is meant."""
    name, where, run_id = request.name, request.workspace_dir, request.run_id
    warnings: list[str] = []
    updated_workspace(name, where, warnings.append)
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
        text = f"run {run_id!r} of {name} is not in progress in a service"
    raise UsageError(
        text,
        where=workspace.root,
        details=[line for warning in warnings for line in warning.splitlines()],
        examples=[run.name for run in found or open_runs],
        hint=next_command(*words, workspace_dir=where),
    )


def _cancel_job(run_dir: Path) -> Cancelled:
    """Asks the service to cancel the job of a run."""
    service = service_of(run_dir)
    command = refresh(run_dir, service).command
    submitted = SubmittedJob.load(run_dir)
    if submitted.name is None:
        raise UsageError(
            f"the service has no job of run {run_dir.name} yet",
            where=run_dir,
            hint="try again in a minute",
        )
    started = service.cancel(submitted.name)
    ended = refresh(run_dir, service).status != "running"
    cloud = read_stored_config(run_dir / "config.json").cloud
    warning = None
    if cloud and cloud.beam.runner == "dataflow":
        # Their labels name the pipeline, but not the run.
        place = f"--project={cloud.project} --region={cloud.region}"
        warning = (
            f"jobs on Dataflow may go on: gcloud dataflow jobs list {place} "
            f"--status=active; gcloud dataflow jobs cancel JOB_ID {place}"
        )
    return Cancelled(command, (), ended, submitted.name, tuple(started), warning)


def _cancel_shared(workspace: Workspace, owner: Owner, run_id: str) -> Cancelled:
    run_dir = workspace.run_dir(run_id)
    # First, so that no node starts after the processes have been listed.
    mark_cancelled(run_dir)
    signalled = []
    for pid in running_nodes(run_dir).values():
        # A killed process may have left others, which still hold the lock.
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
            signalled.append(pid)
    ended = end_cancelled_run(workspace, run_id)
    return Cancelled(owner.command or "", tuple(signalled), ended)
