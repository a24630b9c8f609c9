"""Workspace: the folder that holds everything a pipeline writes.

Layout, below ``<project root>/workspace/<pipeline>/`` unless told otherwise::

    metadata.db     ML Metadata (SQLite)
    artifacts/      outputs of the nodes (TFX's pipeline root)
    checkpoints/    of unfinished trainings, by node and cache key
    inputs/         content-addressed copies of files that the config names
    state/          the lock, the workspace's id, the inputs of the last complete run,
                    digests of files, the last notifications
    documents/      what artifacts hold, for pages, by their id in ML Metadata
    runs/<run id>/  run.json, report.html, logs/<node>.log, and files for resuming it
    serving/        numbered versions and dot-names only, for TensorFlow Serving

Nothing else is written, in particular nothing into the source tree.
"""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sluice import run_lock
from sluice.run_lock import unwritable
from sluice.storage import atomic
from sluice.storage.output_path import resolve_output_path

# Names the folder that holds one workspace per pipeline.
WORKSPACE_VARIABLE = "SLUICE_WORKSPACE"
_DIRECTORIES = ("artifacts", "documents", "inputs", "state", "runs")
_ID_TIME = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True)
class Workspace:
    """The paths of one pipeline's workspace. Creating the object writes nothing."""

    root: Path

    @property
    def digests_file(self) -> Path:
        """Cache of the digests of data files."""
        return self.root / "state" / "file_digests.json"

    @property
    def sources_file(self) -> Path:
        """Cache of the digests and imports of source files."""
        return self.root / "state" / "sources.json"

    @property
    def complete_file(self) -> Path:
        """Inputs and outputs of the last complete run."""
        return self.root / "state" / "complete.json"

    @property
    def notified_file(self) -> Path:
        """The causes that were sent last as notifications."""
        return self.root / "state" / "notified.json"

    @property
    def id(self) -> str | None:
        """Unique id that stays the same if the workspace is moved.

        None before the first run.
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
        """The folders that runs write into, without ``serving``."""
        return tuple(self.root / name for name in _DIRECTORIES)

    @property
    def requests(self) -> Path:
        """Requests to the served model, recorded by day."""
        return self.root / "requests"

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def documents(self) -> Path:
        return self.root / "documents"

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
        """Creates missing folders.

        Args:
          private: removes group and other permissions from the top-level entries
            except ``serving``; the root stays traversable (0711). Modes below are
            unchanged.

        Raises:
          WorkspaceError: the folder cannot be written.
        """
        try:
            for folder in self.folders:
                folder.mkdir(parents=True, exist_ok=True)
            if not os.access(self.root, os.W_OK):
                raise PermissionError(13, os.strerror(13))
            if private:
                self._close_to_others()
        except OSError as error:
            raise unwritable(self.root, error) from error

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
        """Whether a run is in progress on this machine."""
        try:
            return atomic.is_locked(self.lock_file)
        except OSError:
            return False

    @property
    def lock_file(self) -> Path:
        return self.root / "state" / "run.lock"

    def exclusive(self, command: str, **options: Any) -> AbstractContextManager[None]:
        """Holds the pipeline's run lock; see ``run_lock.exclusive``."""
        return run_lock.exclusive(self.lock_file, command, **options)


@contextmanager
def private_umask(private: bool) -> Iterator[None]:
    """Makes the files that this process writes readable by its user alone.

    This includes the processes of its nodes.
    The model store sets the mode of served files itself.
    """
    before = os.umask(0o077) if private else None
    try:
        yield
    finally:
        if before is not None:
            os.umask(before)


def locate(root: Path, pipeline: str) -> Workspace:
    """Returns the workspace of a pipeline.

    It is in the folder that ``SLUICE_WORKSPACE`` names (the option ``--workspace`` sets
    it), or else in ``workspace/`` of the project at ``root``.

    Raises:
      UsageError: the variable names no folder that can be written to.
    """
    if base := os.environ.get(WORKSPACE_VARIABLE):
        parent = resolve_output_path(base, Path.cwd(), "the workspace")
    else:
        parent = root / "workspace"
    return Workspace(parent / pipeline)


@contextmanager
def workspaces_in(folder: str) -> Iterator[None]:
    """Makes ``folder`` the one that holds all workspaces, for this process."""
    before = os.environ.get(WORKSPACE_VARIABLE)
    os.environ[WORKSPACE_VARIABLE] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ[WORKSPACE_VARIABLE]
        else:
            os.environ[WORKSPACE_VARIABLE] = before


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


def installed_version(package: str) -> str | None:
    """Returns the version of an installed distribution, None if there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def next_command(*words: str) -> str:
    """Returns a ``sluice`` command to copy, for the same program and workspace."""
    return shlex.join([_program(), *words, *workspace_option()])


def workspace_option() -> list[str]:
    """Returns ``--workspace DIR`` where another than the project's own is used."""
    given = os.environ.get(WORKSPACE_VARIABLE)
    return ["--workspace", os.path.abspath(given)] if given else []


def _program() -> str:
    called = Path(sys.argv[0])
    installed = called.name == "sluice" and called.parent != Path()
    return str(called) if installed else "sluice"
