"""Lock of a pipeline's workspace: one run at a time, with its owner.

The lock is the kernel's and dies with its owner, but not before the last of the owner's
own processes has ended. A run whose nodes are processes of their own, called one after
another (Airflow's tasks), has moments in which no process of it lives: such an open run
leaves its name in the lock file, and keeps others out until it is ended or nothing was
heard of it for as long as it has asked for.
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
from sluice.storage.storage_errors import FULL

ANY = "any"
_POLL_S = 0.1
# How long the processes of a killed owner may take to end, or a brief owner to finish.
_ORPHANS_END_S = 10.0
# How long others may hold the lock of an open run only to look whether it is free.
_LOOK_S = 2.0


@dataclass(frozen=True)
class Owner:
    """Who holds the lock, as the lock file has it.

    Attributes:
      pid: of the process; of an open run, of the one that began it.
      host: where it runs.
      command: what it was called with.
      started_at: UTC, ISO 8601.
      brief: whether this is no run and soon over.
      shared_run: the id of an open run, None for an owner that holds the lock itself.
      silent_s: for how long an open run may be silent before it counts as abandoned.
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
                f"run {self.shared_run}, open since {self.started_at}: {self.command}"
            )
        if self.pid is None:
            return "an owner that has not said who it is"
        return (
            f"process {self.pid} on {self.host}, since {self.started_at}: "
            f"{self.command}"
        )

    @property
    def is_here(self) -> bool:
        """Whether its process is one of this machine."""
        return self.host == socket.gethostname()

    @property
    def is_alive(self) -> bool:
        """Whether its process runs; true where that cannot be known."""
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
      descriptor: whoever holds it open holds the lock.
      note: that a dead owner's lock was taken over; None if it was free.
      ended_run: the open run from which it was taken on purpose.
    """

    descriptor: int
    note: str | None = None
    ended_run: str | None = None
    _left_to: Owner | None = None

    def leave_open(self, run_id: str, command: str, silent_s: float) -> None:
        """Lets a run stay open when the lock is released; see ``join``."""
        owner = _this_process(command)
        self._left_to = replace(owner, shared_run=run_id, silent_s=silent_s)

    def touch(self) -> None:
        """Says that the open run is not abandoned."""
        os.utime(self.descriptor)

    def _release(self) -> None:
        os.truncate(self.descriptor, 0)
        if self._left_to:
            _write(self.descriptor, self._left_to)


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
    """Holds the lock alone, so that two runs never write at once.

    Owners that are dead, brief or have not said yet who they are get some seconds to
    let go.

    Args:
      path: the lock file.
      command: what this process was called with, for others to read.
      wait: whether to wait for another run to end.
      on_wait: called once with the other's facts when waiting begins.
      brief: whether this is no run and soon over, so that others wait for it.
      end_shared: the shared run to take the lock from, if no node of it runs; ``ANY``
        for whichever there is.

    Raises:
      LockedError: another live process or an open run holds it; its facts are in the
        message.
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
    """Takes part in an open run, beside other processes that do.

    Raises:
      UsageError: the run is not open, or not any more.
      LockedError: another run holds the lock.
      WorkspaceError: the lock cannot be written.
    """
    with ExitStack() as stack:
        try:
            handle = _acquire(stack, path, False, lambda owner: None, shared=True)
        except FileNotFoundError:
            raise not_open(run_id, path) from None
        lock = RunLock(handle)
        owner = _read(handle)
        if owner is None or owner.shared_run != run_id:
            raise not_open(run_id, path)
        lock.touch()
        try:
            yield lock
        finally:
            lock.touch()


def owner_of(path: Path) -> Owner | None:
    """Returns who holds the lock or has a run open, None where it is free."""
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
    takes_part = shared or end_shared is not None
    told = False
    while True:
        try:
            held = stack.enter_context(ExitStack())
            handle = held.enter_context(atomic.lock(path, wait=False, shared=shared))
            owner = _read(handle)
            if (
                shared
                or not (owner and owner.shared_run)
                or _matches(owner, end_shared)
            ):
                return handle
            if _is_abandoned(path, owner):
                return handle
            held.close()
            error: Exception | None = None
            ending = False
        except BlockingIOError as blocked:
            error = blocked
            owner = _read_file(path)
            waited_s = time.monotonic() - begun_s
            looked_at = takes_part and bool(owner and owner.shared_run)
            ending = (looked_at and waited_s < _LOOK_S) or (
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
        if not (told or ending):
            told = True
            on_wait(str(owner or Owner()))
        time.sleep(_POLL_S)


def cancel_command(path: Path) -> str:
    """Returns the command that stops who holds a lock.

    Args:
      path: the lock file.
    """
    workspace = path.parents[1]
    words = ["sluice", "cancel", workspace.name]
    if workspace.parent != Path.cwd() / "workspace":
        words += ["--workspace", str(workspace.parent)]
    return shlex.join(words)


def unwritable(where: Path, error: OSError) -> WorkspaceError:
    """Returns the error of a workspace that cannot be written."""
    return WorkspaceError(
        "the workspace cannot be written",
        where=where,
        actual=error.strerror,
        hint="choose another with --workspace DIR or SLUICE_WORKSPACE",
    )


def not_open(run_id: str, path: Path) -> UsageError:
    """Returns the error of a run that takes no part any more."""
    return UsageError(
        f"run {run_id} is not open: it was never begun, or was ended, cancelled, "
        "resumed "
        "or abandoned",
        where=path,
        hint="sluice resume",
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
    # A time far ahead says as little: the clock was set back since.
    return abs(time.time() - path.stat().st_mtime) > owner.silent_s


def _ends_soon(owner: Owner | None) -> bool:
    """Whether the lock is likely to be free, or its owner known, in a moment."""
    if owner is None:
        return True
    return not owner.shared_run and (owner.brief or not owner.is_alive)


def _matches(owner: Owner, end_shared: str | None) -> bool:
    return end_shared in (ANY, owner.shared_run)


def _taken_over(before: Owner | None) -> str | None:
    """Returns a note on an owner that ended without releasing the lock."""
    if before is None:
        return None
    if before.shared_run:
        return f"took over from a run of which nothing was heard any more: {before}"
    return f"took over the lock of a dead owner: {before}"
