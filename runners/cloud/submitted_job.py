"""``job.json`` of a run in a service: the name and page of its job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sluice.storage import atomic

_JOB_FILE = "job.json"


def save_job(run_dir: Path, name: str, page: str) -> None:
    """Writes both; before the job is submitted, so that none is lost."""
    atomic.write_json(run_dir / _JOB_FILE, {"name": name, "page": page})


def job_of(run_dir: Path) -> str:
    """Returns the name by which the service knows the job of a run."""
    return json.loads((run_dir / _JOB_FILE).read_text(encoding="utf-8"))["name"]


def is_service_run(run_dir: Path) -> bool:
    """Whether a service runs the nodes of a run."""
    return (run_dir / _JOB_FILE).exists()


@contextmanager
def job_lock(run_dir: Path) -> Iterator[None]:
    """Holds the right to submit a run's job, or to bring its record up to date.

    Raises:
      BlockingIOError: another process does so.
    """
    with atomic.lock(run_dir / f".{_JOB_FILE}.lock", wait=False):
        yield
