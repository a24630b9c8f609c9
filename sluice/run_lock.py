"""Lock of a pipeline's workspace: one run at a time, with its owner.

The kernel releases the lock when the last process of its owner has ended. Between two
processes of a shared run, whose nodes are processes of their own (Airflow's tasks),
nobody holds it: the lock file then names the run, and other runs are refused until it
is ended or none of its processes has touched the file for ``silent_s``.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sluice.clock import utc_now
from sluice.errors import LockedError, UsageError, WorkspaceError
from sluice.storage import atomic
from sluice.storage.storage_errors import FULL, disk_full

ANY = "any"
_POLL_S = 0.1
# How long the processes of a killed owner may take to end, or a brief owner to finish.
_ORPHANS_END_S = 10.0
# How long others may hold the lock of a shared run to test whether it is free.
_LOOK_S = 2.0


@dataclass(frozen=True)
class Owner:
    """Owner of the lock, as written in the lock file.

    Attributes:
      pid: of the process; for a shared run, of the one that began it.
      brief: whether it is no run and releases the lock within seconds.
      shared_run: the id of a shared run, None for a process that holds the lock itself.
      silent_s: seconds without a touch after which a shared run counts as abandoned.
    """

    pid: int | None = None
    host: str | None = None
    command: str | None = None
    started_at: str | None = None
    brief: bool = False
    shared_run: str | None = None
    silent_s: float = 0.0

    def __str__(self) -> str:
        if self.shared_run:
            return (
                f"shared run {self.shared_run}, since {self.started_at}: {self.command}"
            )
        if self.pid is None:
            return "an unknown process"
        return (
            f"process {self.pid} on {self.host}, since {self.started_at}: "
            f"{self.command}"
        )

    @property
    def is_here(self) -> bool:
        """Whether it is a process of this machine."""
        return self.host == socket.gethostname()

    @property
    def is_alive(self) -> bool:
        """Whether its process runs; true for a process of another machine."""
        if not self.is_here or self.pid is None:
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


@dataclass
class RunLock:
    """The run lock while it is held.

    Attributes:
      descriptor: of the lock file; a process that inherits it holds the lock as well.
      note: for the record, which dead owner had left the lock; None if it was free.
      ended_run: the shared run that ``end_shared`` has matched.
    """

    descriptor: int
    note: str | None = None
    ended_run: str | None = None
    _next_owner: Owner | None = None

    def share(self, run_id: str, command: str, silent_s: float) -> None:
        """Names a shared run as the owner once this process releases the lock."""
        owner = _this_process(command)
        self._next_owner = replace(owner, shared_run=run_id, silent_s=silent_s)

    def touch(self) -> None:
        """Keeps the shared run from counting as abandoned."""
        os.utime(self.descriptor)

    def _release(self) -> None:
        os.truncate(self.descriptor, 0)
        if self._next_owner:
            _write(self.descriptor, self._next_owner)


@contextmanager
def exclusive(
    path: Path,
    command: str,
    *,
    wait: bool = False,
    on_wait: Callable[[str], None] = lambda owner: None,
    brief: bool = False,
    end_shared: str | None = None,
) -> Iterator[RunLock]:
    """Holds the lock exclusively, so that two runs never write at once.

    Waits some seconds for owners that are dead, brief or not yet in the lock file.

    Args:
      path: the lock file.
      command: the command line of this process, written to the lock file.
      wait: whether to wait for another run to end.
      on_wait: called once with the owner, as text, when waiting begins.
      brief: whether this is no run and releases the lock within seconds.
      end_shared: the id of a shared run to take the lock from, unless one of its nodes
        runs; ``ANY`` for any shared run.

    Raises:
      LockedError: another live process or a shared run holds it; names the owner.
      WorkspaceError: the lock cannot be written.
    """
    with ExitStack() as stack:
        handle = _acquire(stack, path, wait, on_wait, end_shared)
        before = _read(handle)
        os.truncate(handle, 0)
        _write(handle, _this_process(command, brief))
        lock = RunLock(handle)
        if before and before.shared_run and _matches(before, end_shared):
            lock.ended_run = before.shared_run
        else:
            lock.note = _taken_over(before)
        try:
            yield lock
        finally:
            lock._release()


@contextmanager
def join(path: Path, run_id: str) -> Iterator[RunLock]:
    """Holds the lock as one of the processes of a shared run.

    Raises:
      UsageError: the run is not the shared run that owns the lock.
      LockedError: another run holds the lock.
      WorkspaceError: the lock cannot be written.
    """
    with ExitStack() as stack:
        try:
            handle = _acquire(stack, path, False, lambda owner: None, shared=True)
        except FileNotFoundError:
            raise cannot_join(run_id, path) from None
        owner, lock = _read(handle), RunLock(handle)
        if owner is None or owner.shared_run != run_id:
            raise cannot_join(run_id, path)
        lock.touch()
        try:
            yield lock
        finally:
            lock.touch()


def owner_of(path: Path) -> Owner | None:
    """Returns the process or shared run that owns the lock, None where it is free."""
    try:
        owner = _read_file(path)
        if owner and owner.shared_run:
            return None if _is_abandoned(path, owner) else owner
        return (owner or Owner()) if atomic.is_locked(path) else None
    except FileNotFoundError:
        return None


def _acquire(
    stack: ExitStack,
    path: Path,
    wait: bool,
    on_wait: Callable[[str], None],
    end_shared: str | None = None,
    shared: bool = False,
) -> int:
    begun_s = time.monotonic()
    joins = shared or end_shared is not None
    has_announced = False
    while True:
        try:
            held = stack.enter_context(ExitStack())
            handle = held.enter_context(atomic.lock(path, wait=False, shared=shared))
            owner = _read(handle)
            if (
                shared
                or not (owner and owner.shared_run)
                or _matches(owner, end_shared)
                or _is_abandoned(path, owner)
            ):
                return handle
            held.close()
            error: Exception | None = None
            ending = False
        except BlockingIOError as blocked:
            error = blocked
            owner = _read_file(path)
            waited_s = time.monotonic() - begun_s
            tested = joins and bool(owner and owner.shared_run)
            ending = (tested and waited_s < _LOOK_S) or (
                _ends_soon(owner) and waited_s < _ORPHANS_END_S
            )
        except OSError as failed:
            if failed.errno in FULL:
                raise
            raise unwritable(path, failed) from failed
        if not (wait or ending):
            raise LockedError(
                "another run of this pipeline is in progress",
                where=path,
                actual=str(owner or Owner()),
                hint="wait for it (run and resume have --wait), or stop it: "
                + cancel_command(path),
            ) from error
        if not (has_announced or ending):
            has_announced = True
            on_wait(str(owner or Owner()))
        time.sleep(_POLL_S)


def cancel_command(path: Path) -> str:
    """Returns the command that stops the owner of the lock file ``path``."""
    return workspace_command("cancel", path.parents[1])


def workspace_command(verb: str, root: Path) -> str:
    """Returns the command ``sluice VERB PIPELINE`` for the pipeline of a workspace."""
    words = ["sluice", verb, root.name]
    if root.parent != Path.cwd() / "workspace":
        words += ["--workspace", str(root.parent)]
    return shlex.join(words)


def unwritable(where: Path, error: OSError) -> WorkspaceError:
    """Returns the error of a workspace that cannot be written."""
    if error.errno in FULL:
        return disk_full(where, error.strerror)
    return WorkspaceError(
        "the workspace cannot be written",
        where=where,
        actual=error.strerror,
        hint="choose another with --workspace DIR or SLUICE_WORKSPACE",
    )


def cannot_join(run_id: str, path: Path) -> UsageError:
    """Returns the error of a run that is not the shared run which owns the lock."""
    return UsageError(
        f"run {run_id} is not shared: it was never begun, or has been ended, "
        "cancelled, resumed or abandoned",
        where=path,
        hint=workspace_command("resume", path.parents[1]),
    )


def _this_process(command: str, brief: bool = False) -> Owner:
    return Owner(os.getpid(), socket.gethostname(), command, utc_now(), brief)


def _write(handle: int, owner: Owner) -> None:
    facts = {key: value for key, value in asdict(owner).items() if value}
    os.pwrite(handle, json.dumps(facts).encode(), 0)


def _read(handle: int) -> Owner | None:
    return _parse(os.pread(handle, 1 << 16, 0))


def _read_file(path: Path) -> Owner | None:
    try:
        return _parse(path.read_bytes())
    except OSError:
        return None


def _parse(data: bytes) -> Owner | None:
    try:
        return Owner(**json.loads(data))
    except (ValueError, TypeError):
        return None


def _is_abandoned(path: Path, owner: Owner) -> bool:
    # A time far ahead counts too: the clock was set back since.
    return abs(time.time() - path.stat().st_mtime) > owner.silent_s


def _ends_soon(owner: Owner | None) -> bool:
    """Whether the owner is dead, brief or not yet written: it is worth a wait."""
    if owner is None:
        return True
    return not owner.shared_run and (owner.brief or not owner.is_alive)


def _matches(owner: Owner, end_shared: str | None) -> bool:
    return end_shared in (ANY, owner.shared_run)


def _taken_over(before: Owner | None) -> str | None:
    """Returns the note on an owner that ended without releasing the lock."""
    if before is None:
        return None
    if before.shared_run:
        return f"took over the lock of an abandoned run: {before}"
    return f"took over the lock of a dead owner: {before}"
