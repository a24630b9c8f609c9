"""Kinds of resources of the fake Vertex AI, and what each accepts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from vertex_messages import Json, Refused


@dataclass(frozen=True)
class Kind:
    """A kind of resource.

    Attributes:
      type: its class in ``google.cloud.aiplatform_v1.types``.
      output_only: keys that a request must not have.
      initial: what a new one has.
      check: refuses one that is not valid; takes it and the buckets that exist.
      id_parameter: query parameter that names a new one; None if the service does.
      id_pattern: what it must match.
      states: prefix of its states where it can be cancelled.
    """

    type: str
    output_only: tuple[str, ...]
    initial: Json = field(default_factory=dict)
    check: Callable[[Json, set[str] | None], None] = lambda one, buckets: None
    id_parameter: str = ""
    id_pattern: str = r".+"
    states: str | None = None


def _check_job(job: Json, buckets: set[str] | None) -> None:
    spec, runtime = job.get("pipelineSpec", {}), job.get("runtimeConfig", {})
    for key in ("pipelineInfo", "root", "components", "deploymentSpec"):
        if key not in spec:
            raise Refused(400, f"pipeline_spec.{key} is missing")
    if not str(spec.get("schemaVersion")).startswith("2."):
        raise Refused(400, "pipeline_spec.schemaVersion is not supported")
    output = runtime.get("gcsOutputDirectory", "")
    bucket = output.removeprefix("gs://").partition("/")[0]
    if not output.startswith("gs://") or not bucket:
        raise Refused(400, "runtime_config.gcs_output_directory is no gs:// URI")
    if buckets is not None and bucket not in buckets:
        raise Refused(400, f"The specified bucket {bucket} does not exist.")
    declared = spec["root"].get("inputDefinitions", {}).get("parameters", {})
    values = runtime.get("parameterValues", {})
    if unknown := sorted(set(values) - set(declared)):
        raise Refused(400, f"unknown runtime parameters: {unknown}")
    required = {
        name
        for name, item in declared.items()
        if "defaultValue" not in item and not item.get("isOptional")
    }
    if missing := sorted(required - set(values)):
        raise Refused(400, f"runtime parameters without a value: {missing}")


def _check_schedule(schedule: Json, buckets: set[str] | None) -> None:
    if "cron" not in schedule or "maxConcurrentRunCount" not in schedule:
        raise Refused(400, "cron and max_concurrent_run_count are required")
    cron = re.sub(r"^(CRON_)?TZ=\S+ ", "", schedule["cron"])
    if len(cron.split()) != 5:
        raise Refused(400, f"cron {schedule['cron']!r} is not valid")
    request = schedule.get("createPipelineJobRequest")
    if not request or "parent" not in request:
        raise Refused(400, "create_pipeline_job_request is required")
    _check_job(request.get("pipelineJob", {}), buckets)


KINDS = {
    "pipelineJobs": Kind(
        "PipelineJob",
        (
            *("createTime", "startTime", "endTime", "updateTime", "state"),
            *("jobDetail", "error", "templateMetadata", "scheduleName"),
        ),
        {"state": "PIPELINE_STATE_PENDING"},
        _check_job,
        "pipelineJobId",
        r"[a-z][-a-z0-9]{0,127}",
        states="PIPELINE_STATE",
    ),
    "schedules": Kind(
        "Schedule",
        (
            *("createTime", "updateTime", "nextRunTime", "lastPauseTime"),
            *("lastResumeTime", "lastScheduledRunResponse", "state", "catchUp"),
            "startedRunCount",
        ),
        {"state": "ACTIVE"},
        _check_schedule,
    ),
    "customJobs": Kind(
        "CustomJob",
        ("state", "error", "createTime"),
        {"state": "JOB_STATE_PENDING"},
        states="JOB_STATE",
    ),
}
