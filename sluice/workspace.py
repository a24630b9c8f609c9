"""Workspace: the folder that holds everything a pipeline writes.

Layout, below ``<project root>/workspace/<pipeline>/`` unless told otherwise::

    workspace.json  format and versions; a newer format is refused
    metadata.db     ML Metadata (SQLite)
    artifacts/      outputs of the nodes (TFX's pipeline root)
    checkpoints/    of unfinished trainings, by node and cache key
    inputs/         content-addressed copies of files that the config names
    state/          the lock, the workspace's id, the inputs of the last complete run,
                    digests of files, a copy of metadata.db
    runs/<run id>/  run.json, journal.jsonl, record/, logs/<node>.log, and files for
                    resuming it
    serving/        numbered versions and dot-names only, for TensorFlow Serving

Nothing else is written, in particular nothing into the source tree.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sluice import run_lock
from sluice.errors import WorkspaceError
from sluice.run_lock import RunLock, unwritable
from sluice.storage import atomic
from sluice.storage.output_path import resolve_output_path

FORMAT = 1
_FORMAT_FILE = "workspace.json"
_DIRECTORIES = ("artifacts", "inputs", "state", "runs")
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
        return self.root / "state" / "source_files.json"

    @property
    def complete_file(self) -> Path:
        """Inputs and outputs of the last complete run."""
        return self.root / "state" / "complete.json"

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
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

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
        """Creates missing folders and checks the workspace's format.

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
        """Returns the ids of the runs that have a record or a journal, oldest first."""
        recorded = {path.parent for path in self.runs.glob("*/run.json")}
        # A run of LocalRunner has a journal, no config, and no record to begin with.
        journaled = {
            path.parent
            for path in self.runs.glob("*/journal.jsonl")
            if (path.parent / "config.json").exists() and path.stat().st_size
        }
        return sorted(run_dir.name for run_dir in recorded | journaled)

    def new_run_id(self) -> str:
        """Returns an id that sorts after those of all runs so far."""
        names = [path.name for path in self.runs.iterdir()]
        return new_run_id(after=max(names, default=None))

    def is_running(self) -> bool:
        """Whether a run is in progress; true where that is unknown."""
        try:
            return run_lock.owner_of(self.lock_file) is not None
        except OSError:
            return True

    @property
    def lock_file(self) -> Path:
        return self.root / "state" / "run.lock"

    def exclusive(
        self, command: str, **options: Any
    ) -> AbstractContextManager[RunLock]:
        """Holds the pipeline's run lock alone; see ``run_lock.exclusive``."""
        return run_lock.exclusive(self.lock_file, command, **options)

    def join(self, run_id: str) -> AbstractContextManager[RunLock]:
        """Holds the run lock as a process of a shared run; see ``run_lock.join``."""
        return run_lock.join(self.lock_file, run_id)


@contextmanager
def private_umask(private: bool) -> Iterator[None]:
    """Makes the files that this process writes readable by its user alone.

    This includes the jobs of a run: a process pool starts them with its owner's umask.
    The model store sets the mode of served files itself.
    """
    before = os.umask(0o077) if private else None
    try:
        yield
    finally:
        if before is not None:
            os.umask(before)


def check_not_deleted(written: Path) -> None:
    """Checks that the workspace of a running run was not deleted.

    Otherwise the error would be like "attempt to write a readonly database". The folder
    alone proves nothing: running nodes create it again.

    Raises:
      WorkspaceError: it does not exist.
    """
    if not written.exists():
        raise WorkspaceError(
            "the workspace was deleted during the run",
            where=written.parent,
            hint="start a new run with `sluice run`",
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
    parent = resolve_output_path(base, Path.cwd(), what) if base else root / "workspace"
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


def _check_format(path: Path) -> None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise WorkspaceError(
            "the workspace's description file cannot be read",
            where=path,
            expected='JSON such as {"format": 1}',
            hint="restore the file, or choose another folder with --workspace DIR",
        ) from error
    if not isinstance(found, int) or found > FORMAT:
        raise WorkspaceError(
            "the workspace was created by a newer version of Sluice",
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
