"""``job.json`` of a run in a service: which job it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from sluice.errors import WorkspaceError
from sluice.storage import atomic

_JOB_FILE = "job.json"
_MAX_ID = 128


@dataclass(frozen=True)
class SubmittedJob:
    """The job of a run; written before it is submitted, so that no job is lost.

    Attributes:
      name: by which the service knows it.
      page: its address in the service's console.
      record_uri: where the job writes the run's record and page at its end.
    """

    name: str
    page: str
    record_uri: str

    def save(self, run_dir: Path) -> None:
        """Writes the file atomically."""
        atomic.write_json(run_dir / _JOB_FILE, asdict(self))

    @classmethod
    def load(cls, run_dir: Path) -> SubmittedJob:
        """Reads what ``save`` wrote.

        Raises:
          WorkspaceError: it is damaged, or another version of Sluice wrote it.
        """
        path = run_dir / _JOB_FILE
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise WorkspaceError(
                f"it is not known which job run {run_dir.name} is",
                where=path,
                actual=str(error),
                hint="restore the file, or look the job up in the service's console",
            ) from error


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


def job_id_of(pipeline: str, run_id: str) -> str:
    """Returns the id of a run's job: lower-case letters, digits and hyphens."""
    tail = f"-{run_id}".lower()
    name = re.sub(r"[^a-z0-9]+", "-", pipeline.lower()).strip("-") or "run"
    name = name if name[0].isalpha() else f"p-{name}"
    return name[: _MAX_ID - len(tail)] + tail
