"""Schedules of Vertex AI Pipelines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from runners.cloud.cron import Cron
from runners.cloud.schedule import (
    Schedules,
    ScheduleState,
    ServiceSchedule,
    WantedSchedule,
    display_name,
    pipeline_of,
)
from runners.cloud.service import PIPELINE_LABEL
from runners.vertex.client import VertexService
from sluice.errors import RemoteError

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


class VertexSchedules(Schedules):
    """Schedules of one project and region.

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

    def _put(self, wanted: WantedSchedule) -> ServiceSchedule:
        from google.api_core import exceptions

        schedule = self._message(wanted)

        def create_or_update() -> Any:
            # In each attempt: an earlier one may have created it, its answer lost.
            if found := self._ours(wanted.pipeline):
                schedule.name = found[-1].name
                try:
                    return self._client.update_schedule(
                        schedule=schedule,
                        update_mask={"paths": _CHANGED},
                        timeout=_TIMEOUT_S,
                    )
                except exceptions.NotFound:
                    schedule.name = ""  # Deleted since, in favor of a newer one.
            return self._client.create_schedule(
                parent=self._service.parent, schedule=schedule, timeout=_TIMEOUT_S
            )

        return _schedule(self._service.call(create_or_update))

    def _listed(self, pipeline: str | None) -> Sequence[ServiceSchedule]:
        return [*map(_schedule, self._service.call(lambda: self._ours(pipeline)))]

    def _replace(
        self, others: Sequence[ServiceSchedule], newest: ServiceSchedule
    ) -> None:
        for item in others:
            self._delete(item.name)

    def _pause(self, name: str) -> None:
        self._change("PAUSED", name, self._client.pause_schedule, {"name": name})

    def _resume(self, found: ServiceSchedule) -> None:
        request = {"name": found.name, "catch_up": found.catch_up}
        self._change("ACTIVE", found.name, self._client.resume_schedule, request)

    def _delete(self, name: str) -> None:
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

    def _change(
        self, state: str, name: str, function: Callable[..., Any], request: Any
    ) -> None:
        """Changes the state of a schedule, unless it already is in this state."""
        from google.api_core import exceptions

        def change() -> None:
            try:
                function(request, timeout=_TIMEOUT_S)
            except exceptions.BadRequest:
                # A failed precondition: changed by an earlier attempt, its answer lost.
                found = self._client.get_schedule(name=name, timeout=_TIMEOUT_S)
                if found.state.name != state:
                    raise

        self._service.call(change)

    def _ours(self, pipeline: str | None) -> Sequence[Any]:
        """Returns what ``_listed`` does, as messages; not retried."""
        request = {"parent": self._service.parent, "order_by": "create_time"}
        if pipeline is not None:
            request["filter"] = f'display_name="{display_name(pipeline)}"'
        listed = self._client.list_schedules(request, timeout=_TIMEOUT_S)
        found = [item for item in listed if _pipeline_of(item)]
        # Those of the same time in one order for every caller.
        return sorted(found, key=lambda item: (item.create_time, item.name))

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


def _pipeline_of(item: Any) -> str | None:
    labels = item.create_pipeline_job_request.pipeline_job.labels
    return pipeline_of(item.display_name, labels)


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
        pipeline=_pipeline_of(item) or "",
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
