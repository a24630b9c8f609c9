"""The folder in which a pipeline keeps everything it writes.

Layout, below ``<project root>/workspace/<pipeline>/`` unless told otherwise::

    workspace.json  format and versions; a newer format is refused
    metadata.db     ML Metadata (SQLite)
    artifacts/      outputs of the nodes (TFX's pipeline root)
    inputs/         content-addressed copies of files that the config names
    state/          the lock, the workspace's id, what the last complete run was made
                    of, digests of files, a copy of metadata.db
    runs/<run id>/  run.json, journal.jsonl, record/, logs/<node>.log, and what
                    continuing it needs
    serving/        numbered versions and dot-names only, for TensorFlow Serving

Nothing else is written, in particular nothing into the source tree.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sluice.errors import LockedError, WorkspaceError
from sluice.storage import atomic
from sluice.storage.destination import destination
from sluice.storage.full_disk import FULL

FORMAT = 1
_FORMAT_FILE = "workspace.json"
_DIRECTORIES = ("artifacts", "inputs", "state", "runs")
_ID_TIME = "%Y%m%dT%H%M%SZ"
_POLL_S = 0.1
# How long the processes of a killed owner may take to end, or a brief owner to finish.
_ORPHANS_END_S = 10.0


@dataclass(frozen=True)
class Workspace:
    """The paths of one pipeline's workspace. Creating the object writes nothing."""

    root: Path

    @property
    def digests_file(self) -> Path:
        """What is remembered of the data's files."""
        return self.root / "state" / "file_digests.json"

    @property
    def sources_file(self) -> Path:
        """What is remembered of the code."""
        return self.root / "state" / "source_files.json"

    @property
    def complete_file(self) -> Path:
        """What the last complete run was made of."""
        return self.root / "state" / "complete.json"

    @property
    def id(self) -> str | None:
        """Tells this workspace from all others, also where it is moved.

        None before its first run.
        """
        try:
            return self._id_file.read_text(encoding="utf-8").strip() or None
        except OSError:
            return None

    def ensure_id(self) -> None:
        """Gives the workspace an id if it has none; for the lock's holder only."""
        if self.id is None:
            atomic.write_text(self._id_file, f"{secrets.token_hex(8)}\n")

    @property
    def _id_file(self) -> Path:
        return self.root / "state" / "id"

    @property
    def metadata_db(self) -> Path:
        return self.root / "metadata.db"

    @property
    def folders(self) -> tuple[Path, ...]:
        """Those that runs write into, without ``serving``."""
        return tuple(self.root / name for name in _DIRECTORIES)

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def inputs(self) -> Path:
        return self.root / "inputs"

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def serving(self) -> Path:
        return self.root / "serving"

    def run_dir(self, run_id: str) -> Path:
        """Returns the folder of a run; it need not exist."""
        return self.runs / run_id

    def prepare(self, *, private: bool = False) -> None:
        """Creates what is missing and checks the format of what is there.

        Args:
          private: removes group and other permissions from the top-level entries
            except ``serving``; the root stays traversable (0711). Modes below are
            unchanged.

        Raises:
          WorkspaceError: the folder cannot be written, or a newer Sluice made it.
        """
        try:
            for folder in self.folders:
                folder.mkdir(parents=True, exist_ok=True)
            if not os.access(self.root, os.W_OK):
                raise PermissionError(13, os.strerror(13))
            path = self.root / _FORMAT_FILE
            if path.exists():
                _check_format(path)
            else:
                atomic.write_json(path, {"format": FORMAT, **_versions()})
            if private:
                self._close_to_others()
        except OSError as error:
            raise _unwritable(self.root, error) from error

    def _close_to_others(self) -> None:
        own = [path for path in self.root.iterdir() if path != self.serving]
        for path, allowed in [(self.root, 0o711), *((path, 0o700) for path in own)]:
            # Before the run lock is held, SQLite's journal may come and go.
            with suppress(FileNotFoundError):
                mode = path.stat().st_mode & 0o777
                if mode & ~allowed:  # Else its ctime says that it was changed.
                    path.chmod(mode & allowed)

    def run_ids(self) -> list[str]:
        """Returns the ids of the runs that have a record, oldest first."""
        return sorted(path.parent.name for path in self.runs.glob("*/run.json"))

    def new_run_id(self) -> str:
        """Returns an id that sorts after those of all runs so far."""
        names = [path.name for path in self.runs.iterdir()]
        return new_run_id(after=max(names, default=None))

    def is_running(self) -> bool:
        """Whether a live process holds the run lock; true where that is unknown."""
        try:
            return atomic.is_locked(self._lock_file)
        except FileNotFoundError:
            return False
        except OSError:
            return True

    @property
    def _lock_file(self) -> Path:
        return self.root / "state" / "run.lock"

    @contextmanager
    def exclusive(
        self,
        command: str,
        *,
        wait: bool = False,
        on_wait: Callable[[str], None] = lambda owner: None,
        brief: bool = False,
    ) -> Iterator[RunLock]:
        """Holds the pipeline's run lock, so that two runs never write at once.

        The lock is the kernel's and dies with its owner, but not before the last of
        the owner's own processes has ended. Owners that are dead, brief or have not
        said yet who they are get some seconds to let go.

        Args:
          command: what this process was called with, for others to read.
          wait: whether to wait for another run to end.
          on_wait: called once with the other's facts when waiting begins.
          brief: whether this is no run and soon over, so that others wait for it.

        Raises:
          LockedError: another live process holds it; its facts are in the message.
          WorkspaceError: the lock cannot be written.
        """
        with ExitStack() as stack:
            handle = self._acquire(stack, wait, on_wait)
            before = os.pread(handle, 1 << 16, 0).decode(errors="replace")
            _write_owner(handle, command, brief)
            try:
                yield RunLock(handle, _taken_over(before))
            finally:
                os.truncate(handle, 0)

    def _acquire(
        self, stack: ExitStack, wait: bool, on_wait: Callable[[str], None]
    ) -> int:
        path = self._lock_file
        patience_ends = time.monotonic() + _ORPHANS_END_S
        told = False
        while True:
            try:
                return stack.enter_context(atomic.lock(path, wait=False))
            except BlockingIOError as error:
                owner = _read_owner(path)
                ending = _ends_soon(owner) and time.monotonic() < patience_ends
                if not (wait or ending):
                    raise LockedError(
                        "another run of this pipeline is in progress",
                        where=path,
                        actual=_describe(owner),
                        hint="wait for it (run and resume take --wait), or stop it",
                    ) from error
            except OSError as error:
                if error.errno in FULL:
                    raise
                raise _unwritable(path, error) from error
            if not (told or ending):
                told = True
                on_wait(_describe(owner))
            time.sleep(_POLL_S)


@dataclass(frozen=True)
class RunLock:
    """The run lock while it is held.

    Attributes:
      descriptor: whoever holds it open holds the lock.
      note: that a dead owner's lock was taken over; None if it was free.
    """

    descriptor: int
    note: str | None


@contextmanager
def private_umask(private: bool) -> Iterator[None]:
    """Makes what this process writes meanwhile readable by its user alone.

    That holds for the jobs of a run as well: a process pool starts them with the umask
    that its owner has. The model store gives what it serves a mode of its own.

    Args:
      private: false changes nothing.
    """
    before = os.umask(0o077) if private else None
    try:
        yield
    finally:
        if before is not None:
            os.umask(before)


def check_not_deleted(written: Path) -> None:
    """Looks whether a run that goes on still has what it has written.

    What comes of it otherwise, such as "attempt to write a readonly database", says
    nothing of it. The folder may be there: nodes that still run make it again.

    Args:
      written: a file in the run's folder, from its beginning.

    Raises:
      WorkspaceError: it is gone.
    """
    if not written.exists():
        raise WorkspaceError(
            "the workspace was deleted while the run went on",
            where=written.parent,
            hint="begin a new run with `sluice run`",
        )


def locate(root: Path, pipeline: str, override: str | None = None) -> Workspace:
    """Returns the workspace of a pipeline.

    Args:
      root: the project root.
      pipeline: the pipeline's name.
      override: the ``--workspace`` option; else ``SLUICE_WORKSPACE`` counts. Either
        names the folder that holds one workspace per pipeline.

    Raises:
      UsageError: the override names no folder that can be written to.
    """
    base, what = override, "--workspace"
    if not base:
        base, what = os.environ.get("SLUICE_WORKSPACE"), "SLUICE_WORKSPACE"
    parent = destination(base, Path.cwd(), what) if base else root / "workspace"
    return Workspace(parent / pipeline)


def new_run_id(after: str | None = None) -> str:
    """Returns a fresh id ``YYYYMMDDTHHMMSSZ-xxxx`` (UTC; four random hex digits).

    Args:
      after: the latest id so far. Ids sort by age even where the clock was set back:
        the new one is at least a second later.
    """
    now = datetime.now(timezone.utc)
    if after is not None:
        with suppress(ValueError):
            latest = datetime.strptime(after.partition("-")[0], _ID_TIME)
            latest = latest.replace(tzinfo=timezone.utc)
            now = max(now, latest + timedelta(seconds=1))
    return f"{now.strftime(_ID_TIME)}-{secrets.token_hex(2)}"


def utc_now() -> str:
    """Returns the time as ISO 8601 in UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _write_owner(handle: int, command: str, brief: bool) -> None:
    owner: dict[str, Any] = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "command": command,
        "started_at": utc_now(),
    }
    if brief:
        owner["brief"] = True
    os.truncate(handle, 0)
    os.pwrite(handle, json.dumps(owner).encode(), 0)


def _read_owner(path: Path) -> dict[str, Any]:
    try:
        owner = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _describe(owner: dict[str, Any]) -> str:
    if not owner:
        return "an owner that has not said who it is"
    return (
        f"process {owner.get('pid')} on {owner.get('host')}, since "
        f"{owner.get('started_at')}: {owner.get('command')}"
    )


def _ends_soon(owner: dict[str, Any]) -> bool:
    """Whether the lock is likely to be free, or its owner known, in a moment."""
    return not owner or bool(owner.get("brief")) or not _is_alive(owner)


def _is_alive(owner: dict[str, Any]) -> bool:
    """Whether the owner runs; true where that cannot be known."""
    if owner.get("host") != socket.gethostname() or "pid" not in owner:
        return True
    try:
        os.kill(int(owner["pid"]), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, ValueError):
        return True
    return True


def _taken_over(text: str) -> str | None:
    """Returns a note on an owner that ended without releasing the lock."""
    try:
        owner = json.loads(text)
    except ValueError:
        return None
    return f"took over the lock of a dead owner: {_describe(owner)}"


def _unwritable(where: Path, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        "the workspace cannot be written",
        where=where,
        actual=error.strerror,
        hint="choose another with --workspace DIR or SLUICE_WORKSPACE",
    )


def _check_format(path: Path) -> None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise WorkspaceError(
            "the workspace's description cannot be read",
            where=path,
            expected='JSON such as {"format": 1}',
            hint="restore the file, or choose another folder with --workspace DIR",
        ) from error
    if not isinstance(found, int) or found > FORMAT:
        raise WorkspaceError(
            "the workspace was made by a newer Sluice",
            where=path,
            expected=f"format {FORMAT} or older",
            actual=f"format {found}",
            hint="update Sluice, or choose another folder with --workspace DIR",
        )


def _versions() -> dict[str, str | None]:
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "tfx": installed_version("tfx"),
        "ml_metadata": installed_version("ml-metadata"),
    }


def installed_version(package: str) -> str | None:
    """Returns the version of an installed distribution, None if there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
