"""The folder in which a pipeline keeps everything it writes.

Layout, below ``<project root>/workspace/<pipeline>/`` unless told otherwise::

    workspace.json  format and versions; a newer format is refused
    metadata.db     ML Metadata (SQLite)
    artifacts/      outputs of the nodes (TFX's pipeline root)
    inputs/         content-addressed copies of files that the config names
    state/          locks
    runs/<run id>/  run.json, config.json, logs/<node>.log, progress/<node>.jsonl
    serving/        numbered versions and dot-names only, for TensorFlow Serving

Nothing else is written, in particular nothing into the source tree.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sluice import atomic
from sluice.errors import LockedError, WorkspaceError

FORMAT = 1
_FORMAT_FILE = "workspace.json"
_DIRECTORIES = ("artifacts", "inputs", "state", "runs")


@dataclass(frozen=True)
class Workspace:
    """The paths of one pipeline's workspace. Creating the object writes nothing."""

    root: Path

    @property
    def metadata_db(self) -> Path:
        return self.root / "metadata.db"

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

    def prepare(self) -> None:
        """Creates what is missing and checks the format of what is there.

        Raises:
          WorkspaceError: the folder cannot be written, or a newer Sluice made it.
        """
        try:
            for name in _DIRECTORIES:
                (self.root / name).mkdir(parents=True, exist_ok=True)
            if not os.access(self.root, os.W_OK):
                raise PermissionError(13, os.strerror(13))
            path = self.root / _FORMAT_FILE
            if path.exists():
                _check_format(path)
            else:
                atomic.write_json(path, {"format": FORMAT, **_versions()})
        except OSError as error:
            raise WorkspaceError(
                "the workspace cannot be written",
                where=self.root,
                actual=error.strerror,
                hint="choose another with --workspace DIR or SLUICE_WORKSPACE",
            ) from error

    def run_ids(self) -> list[str]:
        """Returns the ids of the runs that have a record, oldest first."""
        return sorted(path.parent.name for path in self.runs.glob("*/run.json"))

    def is_running(self) -> bool:
        """Whether a live process holds the run lock."""
        try:
            with atomic.lock(self._lock_file, wait=False):
                return False
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False

    @property
    def _lock_file(self) -> Path:
        return self.root / "state" / "run.lock"

    @contextmanager
    def exclusive(self, command: str) -> Iterator[None]:
        """Holds the pipeline's run lock, so that two runs never write at once.

        Raises:
          LockedError: another live process holds it; its facts are in the message.
        """
        path = self._lock_file
        try:
            with atomic.lock(path, wait=False) as handle:
                owner = {
                    "pid": os.getpid(),
                    "host": socket.gethostname(),
                    "command": command,
                    "started_at": utc_now(),
                }
                os.truncate(handle, 0)
                os.pwrite(handle, json.dumps(owner).encode(), 0)
                yield
        except BlockingIOError as error:
            raise LockedError(
                "another run of this pipeline is in progress",
                where=path,
                actual=path.read_text(errors="replace") or "unknown owner",
                hint="wait for it to end, then run again",
            ) from error


def locate(root: Path, pipeline: str, override: str | None = None) -> Workspace:
    """Returns the workspace of a pipeline.

    Args:
      root: the project root.
      pipeline: the pipeline's name.
      override: the ``--workspace`` option; else ``SLUICE_WORKSPACE`` counts. Either
        names the folder that holds one workspace per pipeline.
    """
    base = override or os.environ.get("SLUICE_WORKSPACE")
    parent = Path(base).expanduser().resolve() if base else root / "workspace"
    return Workspace(parent / pipeline)


def new_run_id() -> str:
    """Returns a fresh id ``YYYYMMDDTHHMMSSZ-xxxx`` (UTC; four random hex digits)."""
    now = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    return f"{now}-{secrets.token_hex(2)}"


def utc_now() -> str:
    """Returns the time as ISO 8601 in UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


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
