"""Lock of a pipeline's workspace: one run at a time, with its owner.

The kernel releases the lock when its owner ends, however it ends.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from sluice.clock import utc_now
from sluice.errors import LockedError, WorkspaceError
from sluice.storage import atomic
from sluice.storage.storage_errors import FULL, disk_full

_POLL_S = 0.1
_TRIES = 10


@dataclass(frozen=True)
class Owner:
    """The process that holds the lock, as it wrote itself into the lock file."""

    pid: int
    host: str
    command: str
    started_at: str

    def __str__(self) -> str:
        return (
            f"process {self.pid} on {self.host}, since {self.started_at}: "
            f"{self.command}"
        )

    @property
    def is_here(self) -> bool:
        """Whether it is a process of this machine."""
        return self.host == socket.gethostname()


@contextmanager
def exclusive(
    path: Path,
    command: str,
    *,
    wait: bool = False,
    on_wait: Callable[[str], None] = lambda owner: None,
) -> Iterator[None]:
    """Holds the lock exclusively, so that two runs never write at once.

    Args:
      path: the lock file.
      command: the command line of this process, written to the lock file.
      wait: whether to wait for another run to end.
      on_wait: called once with the owner, as text, when waiting begins.

    Raises:
      LockedError: another process holds it; names the owner.
      WorkspaceError: the lock cannot be written.
    """
    with ExitStack() as stack:
        handle: int | None = None
        is_waiting, tries = False, 0
        while handle is None:
            try:
                handle = stack.enter_context(atomic.lock(path, wait=False))
            except BlockingIOError as error:
                # Without a name it may be a test of the lock, which is soon over.
                tries += 1
                if (found := owner_of(path)) is None and tries < _TRIES:
                    time.sleep(_POLL_S)
                    continue
                owner = str(found or "an unknown process")
                if not wait:
                    raise LockedError(
                        "another run of this pipeline is in progress",
                        where=path,
                        actual=owner,
                        hint="wait for it (run and resume have --wait), or stop it: "
                        + workspace_command("cancel", path.parents[1]),
                    ) from error
                if not is_waiting:
                    is_waiting = True
                    on_wait(owner)
                time.sleep(_POLL_S)
            except OSError as error:
                raise unwritable(path, error) from error
        owner_now = Owner(os.getpid(), socket.gethostname(), command, utc_now())
        os.truncate(handle, 0)
        os.pwrite(handle, json.dumps(asdict(owner_now)).encode(), 0)
        try:
            yield
        finally:
            os.truncate(handle, 0)


def owner_of(path: Path) -> Owner | None:
    """Returns the process that holds the lock, None where it is free or unnamed."""
    try:
        if not atomic.is_locked(path):
            return None
        return Owner(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, RecursionError):
        return None


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
