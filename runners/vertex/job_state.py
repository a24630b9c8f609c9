"""Reads Vertex AI's pipeline jobs, in their JSON form, as jobs of a service."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from runners.cloud.service import (
    FailedAttempt,
    JobState,
    ServiceJob,
    ServiceTask,
    TaskState,
)
from runners.cloud.task_event import record_artifact
from sluice.record.events import Artifact
from sluice.secrets import redact

_JOBS: dict[str, JobState] = {
    "PIPELINE_STATE_QUEUED": "pending",
    "PIPELINE_STATE_PENDING": "pending",
    "PIPELINE_STATE_RUNNING": "running",
    "PIPELINE_STATE_PAUSED": "running",
    "PIPELINE_STATE_CANCELLING": "cancelling",
    "PIPELINE_STATE_SUCCEEDED": "succeeded",
    "PIPELINE_STATE_FAILED": "failed",
    "PIPELINE_STATE_CANCELLED": "cancelled",
}
# SKIPPED is "due to cache hit", NOT_TRIGGERED "its trigger policy is not satisfied".
_TASKS: dict[str, TaskState] = {
    "PENDING": "pending",
    "RUNNING": "running",
    "CANCEL_PENDING": "running",
    "CANCELLING": "running",
    "SUCCEEDED": "succeeded",
    "CANCELLED": "cancelled",
    "FAILED": "failed",
    "SKIPPED": "cached",
    "NOT_TRIGGERED": "skipped",
}


def read_job(job: Mapping[str, Any]) -> ServiceJob:
    """Returns a pipeline job with its tasks and its spec."""
    details = job.get("jobDetail", {}).get("taskDetails", ())
    return read_listed_job(
        job,
        tasks=tuple(map(_task, details)),
        spec={key: job[key] for key in ("pipelineSpec", "runtimeConfig") if key in job},
    )


def read_listed_job(job: Mapping[str, Any], **parts: Any) -> ServiceJob:
    """Returns a pipeline job without its tasks, as in a listing."""
    return ServiceJob(
        name=job["name"],
        state=_JOBS.get(job.get("state", ""), "pending"),
        labels=job.get("labels", {}),
        created_at=_time(job, "createTime"),
        started_at=_time(job, "startTime"),
        ended_at=_time(job, "endTime"),
        error=_message(job),
        **parts,
    )


def custom_jobs_of(job: Mapping[str, Any], task: str) -> list[str]:
    """Returns the ids of the custom jobs that ran a task, the latest last."""
    for detail in job.get("jobDetail", {}).get("taskDetails", ()):
        if detail["taskName"] == task:
            names = _jobs_of(detail)
            return [name.rpartition("/")[2] for name in names if name]
    return []


def _jobs_of(detail: Mapping[str, Any]) -> list[str]:
    executor = detail.get("executorDetail", {})
    container = executor.get("containerDetail", {})
    custom = executor.get("customJobDetail", {})
    return [
        *container.get("failedPreCachingCheckJobs", ()),
        container.get("preCachingCheckJob", ""),
        *container.get("failedMainJobs", ()),
        container.get("mainJob", ""),
        *custom.get("failedJobs", ()),
        custom.get("job", ""),
    ]


def _task(detail: Mapping[str, Any]) -> ServiceTask:
    return ServiceTask(
        name=detail["taskName"],
        state=_TASKS.get(detail.get("state", ""), "pending"),
        started_at=_time(detail, "startTime"),
        ended_at=_time(detail, "endTime"),
        failed_attempts=_failed_attempts(detail),
        error=_message(detail),
        inputs=_artifacts(detail.get("inputs", {})),
        outputs=_artifacts(detail.get("outputs", {})),
    )


def _failed_attempts(detail: Mapping[str, Any]) -> tuple[FailedAttempt, ...]:
    """Returns the attempts that the service has repeated.

    Each leaves the name of a failed custom job, and a status that is not final with its
    error; either may be missing.
    """
    executor = detail.get("executorDetail", {})
    failed = [
        *executor.get("containerDetail", {}).get("failedMainJobs", ()),
        *executor.get("customJobDetail", {}).get("failedJobs", ()),
    ]
    repeated = [
        status
        for status in detail.get("pipelineTaskStatus", ())
        if status.get("state") in ("PENDING", "RUNNING") and _message(status)
    ]
    attempts = []
    for number in range(max(len(failed), len(repeated))):
        status = repeated[number] if number < len(repeated) else {}
        reason = _message(status) or f"the job {failed[number]} failed"
        at = _time(status, "updateTime") or _time(detail, "startTime") or ""
        attempts.append(FailedAttempt(at, reason))
    return tuple(attempts)


def _artifacts(found: Mapping[str, Any]) -> dict[str, tuple[Artifact, ...]]:
    return {
        key: tuple(
            record_artifact(
                item.get("name", ""),
                item.get("schemaTitle", ""),
                item.get("uri", ""),
                item.get("metadata", {}),
            )
            for item in items.get("artifacts", ())
        )
        for key, items in found.items()
    }


def _message(item: Mapping[str, Any]) -> str | None:
    return redact(item.get("error", {}).get("message") or "") or None


def _time(item: Mapping[str, Any], key: str) -> str | None:
    """Returns a time to the microsecond, so that times sort as text."""
    if key not in item:
        return None
    from google.protobuf.timestamp_pb2 import Timestamp

    time = Timestamp()
    time.FromJsonString(item[key])
    found: datetime = time.ToDatetime().replace(tzinfo=timezone.utc)
    return found.isoformat(timespec="microseconds")
