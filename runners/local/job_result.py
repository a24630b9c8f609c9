"""What a job reports at its end: a file that is there whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sluice.files import atomic

# The names of the jobs that draw the graph and ask the cache; no node can have them.
PREPARE = ".prepare"
SWEEP = ".sweep"


def _path(run_dir: Path, name: str) -> Path:
    return run_dir / "results" / f"{name}.json"


def write_result(run_dir: Path, name: str, result: dict[str, Any]) -> None:
    """Writes the result of the job ``name``."""
    path = _path(run_dir, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_json(path, result)


def read_result(run_dir: Path, name: str) -> dict[str, Any] | None:
    """Returns the result of a job, None where it ended before it had one."""
    try:
        return json.loads(_path(run_dir, name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def forget_result(run_dir: Path, name: str) -> None:
    """Removes the result of an earlier attempt."""
    _path(run_dir, name).unlink(missing_ok=True)
