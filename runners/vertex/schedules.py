"""Schedules of Vertex AI Pipelines: one per pipeline, known by its display name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pipeline.config.cloud import Schedule
from runners.vertex.client import Json, VertexService, message_of
from sluice.errors import UsageError

_PREFIX = "sluice-"
_CHANGED = (
    "cron",
    "max_concurrent_run_count",
    "allow_queueing",
    "create_pipeline_job_request",
)


@dataclass(frozen=True)
class ServiceSchedule:
    """A schedule as the service has it.

    Attributes:
      name: by which the service knows it.
      pipeline: its name.
      cron: five fields, after ``TZ=<time zone>``.
      state: ``active``, ``paused``, or ``completed`` if it starts no more runs.
      max_concurrent: runs at the same time, at most.
      catch_up: whether missed runs are made up for.
      next_run: UTC, ISO 8601; None if none is planned.
    """

    name: str
    pipeline: str
    cron: str
    state: str
    max_concurrent: int
    catch_up: bool
    next_run: str | None


class VertexSchedules:
    """Schedules of one project and region.

    A run that is due while another one runs is queued if the schedule catches up, and
    left out otherwise. Every method raises ``RemoteError`` if the service refuses or
    does not answer.
    """

    def __init__(self, service: VertexService) -> None:
        self._service = service

    def all(self) -> list[ServiceSchedule]:
        """Returns the schedules of all pipelines, oldest first."""
        request = {"parent": self._service.parent, "order_by": "create_time"}
        found = self._service.call(
            lambda timeout: [*self._client.list_schedules(request, timeout=timeout)]
        )
        return [_read(item) for item in found if item.display_name.startswith(_PREFIX)]

    def get(self, pipeline: str) -> ServiceSchedule:
        """Returns the schedule of a pipeline, the newest if there are several.

        Raises:
          UsageError: it has none.
        """
        if found := self._find(pipeline):
            return found
        raise UsageError(
            f"{pipeline} has no schedule on Vertex AI",
            hint=f"sluice schedule set {pipeline} --cron '0 3 * * *'",
        )

    def put(self, pipeline: str, wanted: Schedule, job: Json) -> ServiceSchedule:
        """Creates or changes the schedule of a pipeline; a paused one stays paused.

        Args:
          pipeline: its name.
          wanted: when runs start, and how many.
          job: compiled for a schedule.
        """
        service, before = self._service, self._find(pipeline)
        schedule = {
            "name": before.name if before else "",
            "display_name": f"{_PREFIX}{pipeline}",
            "cron": f"TZ={wanted.timezone} {wanted.cron}",
            "max_concurrent_run_count": wanted.max_concurrent,
            "allow_queueing": wanted.catch_up,
            "create_pipeline_job_request": {
                "parent": service.parent,
                "pipeline_job": message_of(job),
            },
        }
        if before:
            mask = {"paths": _CHANGED}
            request = {"schedule": schedule, "update_mask": mask}
            return _read(service.call(self._client.update_schedule, request))
        request = {"schedule": schedule, "parent": service.parent}
        return _read(service.call(self._client.create_schedule, request))

    def pause(self, found: ServiceSchedule) -> None:
        """Starts no more runs; those in progress go on."""
        self._service.call(self._client.pause_schedule, name=found.name)

    def resume(self, found: ServiceSchedule) -> None:
        """Starts runs again; also those missed meanwhile if the schedule catches up."""
        request = {"name": found.name, "catch_up": found.catch_up}
        self._service.call(self._client.resume_schedule, request)

    def delete(self, found: ServiceSchedule) -> None:
        """Deletes a schedule; its runs stay."""
        self._service.call(self._client.delete_schedule, name=found.name)

    def _find(self, pipeline: str) -> ServiceSchedule | None:
        found = [item for item in self.all() if item.pipeline == pipeline]
        return found[-1] if found else None

    @cached_property
    def _client(self) -> Any:
        from google.cloud.aiplatform_v1 import ScheduleServiceClient

        return self._service.make_client(ScheduleServiceClient)


def _read(item: Any) -> ServiceSchedule:
    next_run = item.next_run_time
    return ServiceSchedule(
        name=item.name,
        pipeline=item.display_name.removeprefix(_PREFIX),
        cron=item.cron,
        state=item.state.name.lower(),
        max_concurrent=item.max_concurrent_run_count,
        catch_up=item.allow_queueing,
        next_run=next_run.isoformat(timespec="seconds") if next_run else None,
    )
