"""``job.json`` and ``spec.json`` of a run in a service: which job, made of what."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pipeline.config.config import Config
from runners.cloud.service import RUN_LABEL, ServiceJob
from sluice.clock import utc_now
from sluice.errors import WorkspaceError
from sluice.storage import atomic, digest

JOB_FILE, SPEC_FILE = "job.json", "spec.json"
_MAX_ID = 128


@dataclass(frozen=True)
class SubmittedJob:
    """The job of a run; written before it is submitted, so that no job is lost.

    Attributes:
      job_id: see ``Submission.job_id``.
      spec_digest: SHA-256 of ``spec.json``'s content.
      record_uri: where the job writes the run's record and page at its end.
      submitted_at: of this attempt, UTC, ISO 8601.
      attempt: counts the jobs of the run, from 1; a resumed run has several.
      images: digests of the run's images, by name; of those that could be read.
      name: by which the service knows it; None before its first answer.
      page: its address in the service's console.
    """

    job_id: str
    spec_digest: str
    record_uri: str
    submitted_at: str
    attempt: int = 1
    images: dict[str, str] = field(default_factory=dict)
    name: str | None = None
    page: str | None = None

    def save(self, run_dir: Path) -> None:
        """Writes the file atomically."""
        atomic.write_json(run_dir / JOB_FILE, asdict(self))

    @classmethod
    def load(cls, run_dir: Path) -> SubmittedJob:
        """Reads what ``save`` wrote.

        Raises:
          WorkspaceError: it is damaged, or another version of Sluice wrote it.
        """
        path = run_dir / JOB_FILE
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
    return (run_dir / JOB_FILE).exists()


def record_uri_of(config: Config, run_id: str) -> str:
    """Returns the folder in the bucket for the record of a run."""
    return f"{config.cloud_dir}/runs/{run_id}"


def job_id_of(pipeline: str, run_id: str, spec_digest: str, attempt: int) -> str:
    """Returns the id of a run's job, the same for the same spec and run.

    Lower-case letters, digits and hyphens, as all services take them.
    """
    again = f"-{attempt}" if attempt > 1 else ""
    tail = f"-{run_id}-{spec_digest[:8]}{again}".lower()
    name = re.sub(r"[^a-z0-9]+", "-", pipeline.lower()).strip("-") or "run"
    name = name if name[0].isalpha() else f"p-{name}"
    return name[: _MAX_ID - len(tail)] + tail


def run_id_of(job: ServiceJob) -> str:
    """Returns the id of a job's run, for a scheduled one by its time and name."""
    label = job.labels.get(RUN_LABEL, "")
    # It becomes the name of a folder, and Kubeflow takes any text.
    if re.fullmatch(r"\w+-\w+", label):
        time, _, rest = label.partition("-")
        return f"{time.upper()}-{rest}"
    time = (job.created_at or utc_now("seconds"))[:19]
    stamp = time.replace("-", "").replace(":", "")
    return f"{stamp}Z-{digest.of_bytes(job.name.encode())[:4]}"
