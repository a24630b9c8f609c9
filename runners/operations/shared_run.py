"""An open run: which processes run its nodes now, and whether it was cancelled.

Between the calls of ``run_node`` no process of such a run lives, so what they need to
know of each other lies in the run's folder: a lock per node, and a mark.
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

from runners.local.complete_killed_runs import unrecorded_ends
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
    """A run that has begun and whose nodes are run one by one.

    Attributes:
      workspace: its folder.
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
    """Holds the lock of a node, so that no other process runs it; yields a descriptor.

    Raises:
      LockedError: another process runs the node.
    """
    folder = run.run_dir / "nodes"
    folder.mkdir(exist_ok=True)
    path = folder / f"{node}.lock"
    patience_ends = time.monotonic() + _ORPHANS_END_S
    with ExitStack() as stack:
        while True:
            try:
                handle = stack.enter_context(atomic.lock(path, wait=False))
                break
            except BlockingIOError as error:
                pid = _pid_in(path)
                alive = pid is not None and Owner(pid, socket.gethostname()).is_alive
                if alive or time.monotonic() > patience_ends:
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


def record_killed_nodes(recorder: Recorder, *nodes: str) -> None:
    """Records how nodes have ended whose process was killed before it could do so."""
    for node in nodes:
        if recorder.record.node(node).state == "running":
            for event in unrecorded_ends(recorder.record, recorder.run_dir, node):
                recorder.apply(event)


def running_nodes(run_dir: Path) -> dict[str, int]:
    """Returns the process of each node that ``run_node`` runs now, on this machine."""
    found = {}
    for path in (run_dir / "nodes").glob("*.lock"):
        if atomic.is_locked(path) and (pid := _pid_in(path)):
            found[path.stem] = pid
    return found


def mark_cancelled(run_dir: Path) -> None:
    """Keeps further nodes of an open run from being started."""
    path = _cancelled_file(run_dir)
    path.parent.mkdir(exist_ok=True)
    path.touch()


def cancelled(run_dir: Path) -> bool:
    """Whether an open run was cancelled; nodes of it may still run."""
    return _cancelled_file(run_dir).exists()


def end_cancelled(workspace: Workspace, run_id: str) -> bool:
    """Ends an open run that was cancelled; returns whether it has ended."""
    recorder = Recorder(workspace.run_dir(run_id))
    try:
        with workspace.exclusive("sluice cancel", brief=True, end_shared=run_id):
            if recorder.refresh().status == "running":
                close_cancelled(recorder)
    except LockedError:
        # Some of its nodes have not ended yet, or another run has begun since.
        return recorder.refresh().status != "running"
    return True


def close_cancelled(recorder: Recorder) -> None:
    """Closes the record of a run that was cancelled; its lock is held alone."""
    record_killed_nodes(recorder, *(node.id for node in recorder.record.nodes))
    recorder.end(ExitCode.INTERRUPTED, "was cancelled")


def _cancelled_file(run_dir: Path) -> Path:
    return run_dir / "nodes" / "cancelled"


def _pid_in(lock_file: Path) -> int | None:
    """Returns the process that holds the lock of a node, if it has said so."""
    try:
        return int(json.loads(lock_file.read_text())["pid"])
    except ValueError:
        return None
