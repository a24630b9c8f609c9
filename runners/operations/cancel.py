"""Asks the run of a pipeline to stop, as Ctrl-C does."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from runners.operations.find_run import find_workspace
from runners.operations.pipeline_request import next_command
from runners.operations.shared_run import end_cancelled, mark_cancelled, running_nodes
from sluice.errors import UsageError
from sluice.run_lock import Owner, owner_of
from sluice.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class CancelRequest:
    """Which pipeline's run is to stop.

    Attributes:
      name: a config's name or path.
      workspace_dir: as for ``PipelineRequest``.
    """

    name: str
    workspace_dir: str | None = None


@dataclass(frozen=True)
class Cancelled:
    """What was asked to stop.

    Attributes:
      command: of the run.
      pids: the processes that were asked; empty where none of an open run lives.
      ended: whether the run has ended already.
    """

    command: str
    pids: tuple[int, ...]
    ended: bool

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {"schema_version": 1, **asdict(self)}


def cancel(request: CancelRequest) -> Cancelled:
    """Asks the process of a run to stop; called again, it kills the nodes.

    An open run, whose nodes are processes of their own, ends with the last of them.

    Raises:
      UsageError: nothing runs, or not on this machine.
    """
    workspace = find_workspace(request.name, request.workspace_dir)
    owner = owner_of(workspace.lock_file)
    if owner is None or owner.brief:
        hint = next_command("runs", request.name, workspace_dir=request.workspace_dir)
        text = f"no run of {request.name} is in progress"
        raise UsageError(text, where=workspace.root, hint=hint)
    if owner.shared_run:
        return _cancel_open(workspace, owner, owner.shared_run)
    if not owner.is_here or owner.pid is None or not owner.is_alive:
        raise UsageError(
            f"the run of {request.name} has no process on this machine to stop",
            where=workspace.lock_file,
            actual=str(owner),
            hint="call sluice cancel on that host"
            if not owner.is_here
            else "wait: its last processes are ending",
        )
    os.kill(owner.pid, signal.SIGINT)
    return Cancelled(owner.command or "", (owner.pid,), ended=False)


def _cancel_open(workspace: Workspace, owner: Owner, run_id: str) -> Cancelled:
    run_dir = workspace.run_dir(run_id)
    # First, so that no node begins that is not among those that are asked.
    mark_cancelled(run_dir)
    asked = []
    for pid in running_nodes(run_dir).values():
        # One that was killed may have left processes that are about to end.
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
            asked.append(pid)
    ended = end_cancelled(workspace, run_id)
    return Cancelled(owner.command or "", tuple(asked), ended)
