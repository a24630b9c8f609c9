"""Operation: stops the run in progress, as Ctrl-C does."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from pipeline.config.serialize import read_stored_config
from runners.cloud.submitted_job import job_of
from runners.operations.find_run import (
    find_workspace,
    local_run_ids,
    updated_workspace,
)
from sluice.errors import UsageError
from sluice.run_lock import owner_of


def cancel(name: str, run_id: str | None = None) -> dict[str, Any]:
    """Sends SIGINT to the process of a run, or cancels its job in the service.

    Args:
      name: a config's name or path.
      run_id: of the run, or its beginning; None for the one in progress.

    Returns:
      The ``command`` of the run; the ``pid`` that was signalled, or the ``job`` that
      the service was asked to cancel, with ``started_jobs``, those of its tasks, and
      a ``warning`` of what may go on.

    Raises:
      UsageError: no such run is in progress, or it is one of another machine, or
        several are in progress in the service and none is named.
      RemoteError: the service refuses or does not answer.
    """
    workspace = find_workspace(name)
    owner = owner_of(workspace.lock_file)
    newest = next(local_run_ids(workspace), "")
    if owner is None or (run_id and not newest.startswith(run_id)):
        return _cancel_job(_find_open(name, run_id))
    if not owner.is_here:
        raise UsageError(
            f"the run of {name} has no process on this machine to stop",
            where=owner.host,
        )
    os.kill(owner.pid, signal.SIGINT)
    return _answer(owner.command, pid=owner.pid)


def _answer(command: str, **facts: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("pid", "job", "warning"))
    return {"command": command, **nothing, "started_jobs": [], **facts}


def _find_open(name: str, run_id: str | None) -> Path:
    """Returns the folder of the run in a service that is meant."""
    from runners.cloud.refresh import open_service_runs

    workspace = updated_workspace(name)
    open_runs = open_service_runs(workspace)
    matching = [run for run in open_runs if run.name.startswith(run_id or "")]
    if len(matching) == 1:
        return matching[0]
    # Others may be those of a schedule or of another machine.
    several = f"several runs of {name} are in progress: give one with --run ID"
    raise UsageError(
        several if matching else f"no run of {name} is in progress",
        where=workspace.root,
        examples=[run.name for run in matching or open_runs],
    )


def _cancel_job(run_dir: Path) -> dict[str, Any]:
    """Asks the service to cancel the job of a run."""
    # The client takes a second to import.
    from runners.cloud.refresh import refresh
    from runners.cloud.vertex_client import service_of

    config = read_stored_config(run_dir / "config.json")
    service, job, warning = service_of(config), job_of(run_dir), None
    started_jobs = service.cancel(job)
    if config.cloud and config.cloud.beam.runner == "dataflow":
        # Their labels name the pipeline, but not the run.
        warning = (
            "jobs on Dataflow may go on: see gcloud dataflow jobs list "
            f"--project={config.cloud.project} --region={config.cloud.region} "
            "--status=active"
        )
    command = refresh(run_dir, service).command
    return _answer(command, job=job, started_jobs=started_jobs, warning=warning)
