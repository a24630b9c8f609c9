"""Results of a job: files that are written atomically at its end."""

from __future__ import annotations

import json
import pickle
from multiprocessing.pool import (  # type: ignore[attr-defined]
    ExceptionWithTraceback,
    RemoteTraceback,
)
from pathlib import Path
from typing import Any

from sluice.storage import atomic

# Jobs that are no nodes: no node id begins with a dot.
PREPARE = ".prepare"
RESOLVE_CACHED = ".resolve_cached"


def _path(run_dir: Path, name: str) -> Path:
    return run_dir / "results" / f"{name}.json"


def write_result(run_dir: Path, name: str, result: dict[str, Any]) -> None:
    """Writes the result of the job ``name``."""
    path = _path(run_dir, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_json(path, result)


def read_result(run_dir: Path, name: str) -> dict[str, Any] | None:
    """Returns the result of a job, None if it ended before it wrote one."""
    try:
        return json.loads(_path(run_dir, name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def write_exception(run_dir: Path, name: str, error: BaseException) -> None:
    """Pickles the exception of a job for the process that waits for it.

    As in ``multiprocessing``'s pools the traceback is text. Of an exception that cannot
    be pickled, only the traceback is written.
    """
    wrapped = ExceptionWithTraceback(error, error.__traceback__)
    try:
        data = pickle.dumps(wrapped)
        pickle.loads(data)
    except Exception:
        data = pickle.dumps(RemoteTraceback(wrapped.tb))
    path = _exception(run_dir, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_bytes(path, data)


def read_exception(run_dir: Path, name: str) -> BaseException | None:
    """Returns what ``write_exception`` wrote, None if there is nothing."""
    try:
        return pickle.loads(_exception(run_dir, name).read_bytes())
    except Exception:  # Its class may not be importable here.
        return None


def forget_result(run_dir: Path, name: str) -> None:
    """Deletes the result and exception of an earlier attempt."""
    _path(run_dir, name).unlink(missing_ok=True)
    _exception(run_dir, name).unlink(missing_ok=True)


def _exception(run_dir: Path, name: str) -> Path:
    return _path(run_dir, name).with_suffix(".exception")
