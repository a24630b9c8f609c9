"""Shared run: locks of its nodes, and whether it was cancelled.

The processes that call ``run_node`` share this state through the run's folder: a lock
file per node, and a file that marks the run as cancelled.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from runners.local.write_report import write_report
from runners.operations.complete_killed_runs import record_killed_nodes
from sluice.errors import ExitCode, LockedError
from sluice.record.recorder import Recorder
from sluice.run_lock import Owner, cancel_command
from sluice.storage import atomic
from sluice.workspace import Workspace

_POLL_S = 0.1
# How long the processes of a killed owner may take to end.
_ORPHANS_END_S = 10.0


@dataclass(frozen=True)
class SharedRun:
    """A run whose nodes are run one by one, each by a process of its own.

    Attributes:
      workspace: the folder of the pipeline's workspace.
      run_id: its id.
      nodes: the ids of its nodes, in topological order.
    """

    workspace: Path
    run_id: str
    nodes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def run_dir(self) -> Path:
        return Workspace(self.workspace).run_dir(self.run_id)


@contextmanager
def node_lock(run: SharedRun, node: str) -> Iterator[int]:
    """Holds the lock of a node; yields the descriptor of the lock file.

    Raises:
      LockedError: another process runs the node.
    """
    folder = run.run_dir / "nodes"
    folder.mkdir(exist_ok=True)
    path = folder / f"{node}.lock"
    gives_up_s = time.monotonic() + _ORPHANS_END_S
    with ExitStack() as stack:
        while True:
            try:
                handle = stack.enter_context(atomic.lock(path, wait=False))
                break
            except BlockingIOError as error:
                pid = _pid_in(path)
                alive = pid is not None and Owner(pid, socket.gethostname()).is_alive
                if alive or time.monotonic() > gives_up_s:
                    raise LockedError(
                        f"{node} is already running in run {run.run_id}",
                        where=path,
                        actual=f"process {pid}" if pid else None,
                        hint="wait for it to end, or stop the run: "
                        + cancel_command(Workspace(run.workspace).lock_file),
                    ) from error
                time.sleep(_POLL_S)
        os.truncate(handle, 0)
        os.pwrite(handle, json.dumps({"pid": os.getpid()}).encode(), 0)
        try:
            yield handle
        finally:
            os.truncate(handle, 0)


def running_nodes(run_dir: Path) -> dict[str, int]:
    """Returns, by node, the id of the process that runs it on this machine."""
    found = {}
    for path in (run_dir / "nodes").glob("*.lock"):
        if atomic.is_locked(path) and (pid := _pid_in(path)):
            found[path.stem] = pid
    return found


def mark_cancelled(run_dir: Path) -> None:
    """Marks a shared run as cancelled: no further node of it is started."""
    path = _cancelled_file(run_dir)
    path.parent.mkdir(exist_ok=True)
    path.touch()


def is_cancelled(run_dir: Path) -> bool:
    """Whether a shared run was cancelled; nodes of it may still run."""
    return _cancelled_file(run_dir).exists()


def end_cancelled_run(workspace: Workspace, run_id: str) -> bool:
    """Closes the record of a cancelled run, unless nodes of it still run.

    Returns:
      Whether the record is closed.
    """
    recorder = Recorder(workspace.run_dir(run_id))
    try:
        with workspace.exclusive("sluice cancel", brief=True, end_shared=run_id):
            if recorder.refresh().status == "running":
                close_cancelled_run(recorder)
    except LockedError:
        # Some of its nodes have not ended yet, or another run has begun since.
        return recorder.refresh().status != "running"
    return True


def close_cancelled_run(recorder: Recorder) -> None:
    """Closes the record of a cancelled run; the caller holds its lock exclusively."""
    record_killed_nodes(recorder, *(node.id for node in recorder.record.nodes))
    recorder.end(ExitCode.INTERRUPTED, "was cancelled")
    write_report(recorder)


def _cancelled_file(run_dir: Path) -> Path:
    return run_dir / "nodes" / "cancelled"


def _pid_in(lock_file: Path) -> int | None:
    """Returns the process id in the lock file of a node, None before it is written."""
    try:
        return int(json.loads(lock_file.read_text())["pid"])
    except ValueError:
        return None
