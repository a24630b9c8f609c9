"""Schedules of Vertex AI Pipelines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

from runners.cloud.cron import Cron
from runners.cloud.schedule import (
    ScheduleState,
    ServiceSchedule,
    WantedSchedule,
    display_name,
    pipeline_of,
)
from runners.cloud.service import PIPELINE_LABEL
from runners.vertex.client import VertexService
from sluice.errors import RemoteError

_Result = TypeVar("_Result")

_TIMEOUT_S = 60.0
_CHANGED = (
    "cron",
    "max_concurrent_run_count",
    "allow_queueing",
    "create_pipeline_job_request",
)
_STATES: dict[str, ScheduleState] = {
    "ACTIVE": "active",
    "PAUSED": "paused",
    "COMPLETED": "completed",
}


class VertexSchedules:
    """Schedules of one project and region; see ``Schedules``.

    A run that is due while another one runs is queued if the schedule catches up, and
    left out otherwise.

    Args:
      service: of this project and region.
    """

    engine = "vertex"

    def __init__(self, service: VertexService) -> None:
        self._service = service

    def check(self, cron: Cron) -> None:
        """Accepts every timezone."""

    def set(self, wanted: WantedSchedule) -> ServiceSchedule:
        """Creates the schedule of a pipeline, or updates it in place."""
        schedule = self._message(wanted)

        def create_or_update() -> Any:
            # In each attempt: an earlier one may have created it, its answer lost.
            found = self._named(wanted.pipeline)
            if not found:
                return self._client.create_schedule(
                    parent=self._service.parent, schedule=schedule, timeout=_TIMEOUT_S
                )
            schedule.name = found[0].name
            return self._client.update_schedule(
                schedule=schedule,
                update_mask={"paths": _CHANGED},
                timeout=_TIMEOUT_S,
            )

        made = self._service.call(create_or_update)
        # A new one may be missing in the list.
        found = self._service.call(partial(self._named, wanted.pipeline)) or [made]
        first, *others = found
        for other in others:
            self.delete(other.name)
        return _schedule(first)

    def list(self) -> Sequence[ServiceSchedule]:
        """Returns the schedules with our names."""

        def listed() -> list[Any]:
            request = {"parent": self._service.parent, "order_by": "create_time"}
            return list(self._client.list_schedules(request, timeout=_TIMEOUT_S))

        found = self._service.call(listed)
        return [_schedule(item) for item in found if pipeline_of(item.display_name)]

    def pause(self, name: str) -> None:
        """Pauses a schedule."""
        self._act(self._client.pause_schedule, name=name)

    def resume(self, name: str, *, catch_up: bool) -> None:
        """Resumes a schedule."""
        request = {"name": name, "catch_up": catch_up}
        self._act(self._client.resume_schedule, request=request)

    def delete(self, name: str) -> None:
        """Deletes a schedule; one that is gone is no error."""
        from google.api_core import exceptions

        def delete() -> None:
            try:
                self._client.delete_schedule(name=name, timeout=_TIMEOUT_S).result(
                    timeout=_TIMEOUT_S
                )
            except exceptions.NotFound:
                # Deleted by an earlier attempt, its answer lost.
                return

        self._service.call(delete)

    def _act(self, function: Callable[..., _Result], **request: Any) -> _Result:
        return self._service.call(partial(function, **request, timeout=_TIMEOUT_S))

    def _named(self, pipeline: str) -> Sequence[Any]:
        """Returns the schedules of a pipeline, oldest first; not retried."""
        request = {
            "parent": self._service.parent,
            "filter": f'display_name="{display_name(pipeline)}"',
            "order_by": "create_time",
        }
        return [*self._client.list_schedules(request, timeout=_TIMEOUT_S)]

    def _message(self, wanted: WantedSchedule) -> Any:
        from google.cloud.aiplatform_v1 import types

        job = self._service.message_of(
            wanted.job, {**wanted.labels, PIPELINE_LABEL: wanted.pipeline}
        )
        return types.Schedule(
            display_name=display_name(wanted.pipeline),
            cron=f"TZ={wanted.cron.timezone} {wanted.cron.expression}",
            max_concurrent_run_count=wanted.max_concurrent,
            allow_queueing=wanted.catch_up,
            create_pipeline_job_request=types.CreatePipelineJobRequest(
                parent=self._service.parent, pipeline_job=job
            ),
        )

    @cached_property
    def _client(self) -> Any:
        from google.cloud.aiplatform_v1.services.schedule_service import (
            ScheduleServiceClient,
        )

        return self._service.make_client(ScheduleServiceClient)


def _schedule(item: Any) -> ServiceSchedule:
    zone, _, expression = item.cron.rpartition("=")[2].partition(" ")
    has_zone = "TZ=" in item.cron
    state = _STATES.get(item.state.name)
    if state is None:
        raise RemoteError(
            "a schedule of Vertex AI is in an unknown state",
            where=item.name,
            actual=item.state.name,
        )
    return ServiceSchedule(
        name=item.name,
        pipeline=pipeline_of(item.display_name) or item.display_name,
        cron=expression if has_zone else item.cron,
        timezone=zone if has_zone else "UTC",
        state=state,
        max_concurrent=item.max_concurrent_run_count,
        catch_up=item.allow_queueing,
        created_at=_time(item.create_time),
        updated_at=_time(item.update_time),
    )


def _time(value: Any) -> str | None:
    return value.isoformat(timespec="milliseconds") if value else None
