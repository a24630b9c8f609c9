"""Operations: the schedule by which Vertex AI starts runs of a pipeline.

What needs nothing of the pipeline, such as a pause, is left to the service's console.
"""

from __future__ import annotations

from typing import Any

from pipeline.checks.before_run import check_before_run
from pipeline.config.config import Config
from runners.cloud.job_inputs import explain_storage, upload
from runners.cloud.vertex_client import (
    VertexService,
    message_of,
    service_of,
    vertex_job,
)
from runners.engine import Observer
from runners.operations.compile import compile_checked
from runners.operations.print_schedule import schedule_of
from sluice.errors import UsageError

_PREFIX = "sluice-"

# A schedule as a dict, see ``_facts``.
Facts = dict[str, Any]


def set_schedule(config: Config, observer: Observer | None = None) -> Facts:
    """Creates the schedule of a pipeline, or changes it in place.

    Args:
      config: with ``cloud.schedule``.
      observer: of what it does.

    Raises:
      UsageError: the config is wrong.
      RemoteError: the service refuses or does not answer.
    """
    observer = observer or Observer()
    wanted = schedule_of(config)
    warn = observer.on_warning
    config = check_before_run(config, in_service=True, on_warning=warn)
    service = service_of(config)
    observer.on_note("compiling for the service")
    compiled = compile_checked(config, scheduled=True)
    with explain_storage(config):
        for file in compiled.uploads:
            upload(file)
    fields = {
        "cron": f"TZ={wanted.timezone} {wanted.cron}",
        "max_concurrent_run_count": wanted.max_concurrent,
        "allow_queueing": wanted.catch_up,
        "create_pipeline_job_request": {
            "parent": service.parent,
            "pipeline_job": message_of(vertex_job(config, compiled.job, {})),
        },
    }
    item = {"display_name": f"{_PREFIX}{config.name}", **fields}
    if before := _find(service, config.name):
        item["name"] = before.name
        request = {"schedule": item, "update_mask": {"paths": [*fields]}}
        return _facts(service.call(_client(service).update_schedule, request))
    request = {"schedule": item, "parent": service.parent}
    return _facts(service.call(_client(service).create_schedule, request))


def get_schedule(config: Config) -> Facts:
    """Returns the schedule of a pipeline.

    Raises:
      UsageError: it has none.
    """
    return _facts(_get(service_of(config), config.name))


def delete_schedule(config: Config) -> Facts:
    """Deletes the schedule of a pipeline; its runs stay."""
    service = service_of(config)
    found = _get(service, config.name)
    service.call(_client(service).delete_schedule, name=found.name)
    return _facts(found)


def _client(service: VertexService) -> Any:
    from google.cloud.aiplatform_v1 import ScheduleServiceClient

    return service.make_client(ScheduleServiceClient)


def _find(service: VertexService, pipeline: str) -> Any | None:
    """Returns the schedule of a pipeline, the newest if there are several."""
    listed = _client(service).list_schedules
    request = {"parent": service.parent, "order_by": "create_time"}
    every = service.call(lambda timeout: [*listed(request, timeout=timeout)])
    name = f"{_PREFIX}{pipeline}"
    found = [item for item in every if item.display_name == name]
    return found[-1] if found else None


def _get(service: VertexService, pipeline: str) -> Any:
    """Returns the schedule of a pipeline.

    Raises:
      UsageError: it has none.
    """
    if found := _find(service, pipeline):
        return found
    raise UsageError(
        f"{pipeline} has no schedule on Vertex AI",
        hint=f"sluice schedule set {pipeline} --cron '0 3 * * *'",
    )


def _facts(schedule: Any) -> dict[str, Any]:
    next_run = schedule.next_run_time
    return {
        "name": schedule.name,
        "pipeline": schedule.display_name.removeprefix(_PREFIX),
        "cron": schedule.cron,
        "state": schedule.state.name.lower(),
        "max_concurrent": schedule.max_concurrent_run_count,
        "catch_up": schedule.allow_queueing,
        "next_run": next_run.isoformat(timespec="seconds") if next_run else None,
    }
