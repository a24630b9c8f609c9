"""Protocol of a pipeline service's client: submit, get, list, cancel, logs.

Vertex AI and Kubeflow Pipelines describe a run in forms of their own. Their clients
convert it to the values here, from which ``service_run`` derives the events of a run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from sluice.errors import NoAnswerError, RemoteError
from sluice.record.events import Artifact

TaskState = Literal[
    "pending", "running", "succeeded", "cached", "skipped", "failed", "cancelled"
]
JobState = Literal[
    "pending", "running", "cancelling", "succeeded", "failed", "cancelled"
]
ENDED: frozenset[JobState] = frozenset({"succeeded", "failed", "cancelled"})

# Labels of every job; their values are a pipeline's name, a run's id in lower case and
# the first digits of a spec's digest.
PIPELINE_LABEL, RUN_LABEL, SPEC_LABEL = "sluice-pipeline", "sluice-run", "sluice-spec"


@dataclass(frozen=True)
class FailedAttempt:
    """An attempt that the service repeats; times are UTC, ISO 8601."""

    at: str
    reason: str


@dataclass(frozen=True)
class ServiceTask:
    """A task of a job as the service has it.

    Attributes:
      name: of the task in the spec, which is the node's id.
      state: ``cached`` if its outputs are those of an earlier job, ``skipped`` if its
        trigger condition does not hold.
      started_at: UTC, ISO 8601; None before.
      ended_at: likewise.
      failed_attempts: those before the current one, oldest first.
      error: why it failed, in the service's words.
      inputs: artifacts by input key.
      outputs: artifacts by output key.
    """

    name: str
    state: TaskState
    started_at: str | None = None
    ended_at: str | None = None
    failed_attempts: tuple[FailedAttempt, ...] = ()
    error: str | None = None
    inputs: Mapping[str, tuple[Artifact, ...]] = field(default_factory=dict)
    outputs: Mapping[str, tuple[Artifact, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ServiceJob:
    """A job as the service has it.

    Attributes:
      name: by which the service knows it.
      state: see ``JobState``.
      labels: those of ``Submission``.
      created_at: UTC, ISO 8601, as all times.
      started_at: None before.
      ended_at: None before.
      error: why it failed, in the service's words.
      tasks: those that have begun, in any order; tasks of inner graphs included.
      spec: the pipeline spec; empty in a listing.
    """

    name: str
    state: JobState
    labels: Mapping[str, str] = field(default_factory=dict)
    created_at: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    error: str | None = None
    tasks: tuple[ServiceTask, ...] = ()
    spec: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Submission:
    """A job to submit.

    Attributes:
      job_id: chosen by the caller: a second submission with the same id is the same.
      job: the compiled job: ``displayName``, ``pipelineSpec`` and ``runtimeConfig``
        with ``gcsOutputDirectory`` and ``parameterValues``.
      labels: see ``PIPELINE_LABEL``.
    """

    job_id: str
    job: Mapping[str, Any]
    labels: Mapping[str, str]


@contextmanager
def unanswered_after(sent: Sequence[object]) -> Iterator[None]:
    """Raises ``NoAnswerError`` instead of a refusal, if something was sent before it.

    A service that refuses to say more, such as for an expired token, may have taken an
    earlier request.
    """
    try:
        yield
    except NoAnswerError:
        raise
    except RemoteError as error:
        if not sent:
            raise
        raise NoAnswerError(
            error.what, where=error.where, actual=error.actual, hint=error.hint
        ) from error


class Service(Protocol):
    """Client of a service that runs compiled pipelines.

    Every method raises ``RemoteError`` if the service refuses, and ``NoAnswerError`` if
    it does not answer; the hint names what to grant, create or wait for.

    Attributes:
      engine: the config's name of it, ``cloud.engine``.
    """

    engine: str

    def submit(self, submission: Submission) -> str:
        """Submits a job, once, also where an answer is lost; returns its name."""
        ...

    def get(self, name: str) -> ServiceJob | None:
        """Returns a job; None if there is none of this name."""
        ...

    def find(self, job_id: str) -> ServiceJob | None:
        """Returns the job of a ``Submission.job_id``; None if there is none."""
        ...

    def list(self, pipeline: str, limit: int) -> list[ServiceJob]:
        """Returns the newest jobs of a pipeline, without tasks and spec."""
        ...

    def cancel(self, name: str) -> Sequence[str]:
        """Asks to cancel a job; one that has ended stays as it is.

        Returns:
          The names of the jobs that its tasks have started, and that are cancelled too.
        """
        ...

    def logs(self, name: str, task: str, limit: int) -> Iterator[str]:
        """Yields the last lines of a task's log, oldest first."""
        ...

    def page(self, name: str) -> str | None:
        """Returns the address of the job's page in the service's console."""
        ...


def artifact_id(name: str) -> int:
    """Returns the number of an artifact that a service knows by name.

    The last part of the name where that is a number; otherwise one that is computed
    from the name.
    """
    last = name.rpartition("/")[2]
    if last.isdecimal():
        return int(last)
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big")
