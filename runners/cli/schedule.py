"""``sluice schedule``: runs that Vertex AI starts by itself."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any

import click

from pipeline.config.cloud import Schedule
from pipeline.config.config import Config
from runners.cli.echo import echo, echo_warning
from runners.cli.options import Result, config_argument, config_options, verb
from runners.cloud.check_cloud import check_cloud, cloud_of
from runners.cloud.compile_spec import compile_checked
from runners.cloud.image import check_images
from runners.cloud.job_inputs import explain_storage, upload
from runners.operations.pipeline_request import validated
from runners.vertex.client import (
    Json,
    VertexService,
    message_of,
    service_of,
    vertex_job,
)
from sluice.errors import UsageError

_LAST_RUNS = 5


@click.group()
def schedule() -> None:
    """Run pipelines on a schedule of Vertex AI.

    The first node of a scheduled run selects the spans, and stops the run where there
    is nothing new.
    """


@verb("set", group=schedule)
@click.option("--cron", metavar="CRON", help="Five fields, such as '0 3 * * *'.")
@click.option("--timezone", metavar="ZONE", help="Such as Europe/Berlin.")
@click.option("--max-concurrent", type=int, help="Runs at the same time, at most.")
@click.option(
    "--catch-up/--no-catch-up",
    default=None,
    help="Whether missed runs are made up for.",
)
@config_options
def set_(
    name: str, profile: str | None, overrides: tuple[str, ...], **asked: Any
) -> Result:
    """Create the schedule of NAME, or change it in place; a paused one stays paused.

    The options stand for the keys of cloud.schedule. The pipeline runs as it is
    compiled now: set the schedule again after a change.
    """
    from pipeline.config.load import load_config

    given = {key: value for key, value in asked.items() if value is not None}
    keys = [f"cloud.schedule.{key}={json.dumps(given[key])}" for key in given]
    config = load_config(name, profile=profile, overrides=(*overrides, *keys))
    return _result(set_schedule(config))


@verb("list", group=schedule)
@config_argument
def list_(config: Config) -> Result:
    """List the schedules of all pipelines in the project and region of NAME."""
    found = VertexSchedules(service_of(config)).all()
    lines = [line for item in found for line in _lines(item)]
    none = "no pipeline has a schedule; try: sluice schedule set NAME --cron CRON"
    return Result([asdict(item) for item in found], partial(echo, *(lines or [none])))


@verb(group=schedule)
@config_argument
def show(config: Config) -> Result:
    """Show the schedule of NAME and the last runs."""
    service = service_of(config)
    found = VertexSchedules(service).get(config.name)
    runs = [
        {
            "created_at": job["createTime"],
            "state": job["state"].removeprefix("PIPELINE_STATE_").lower(),
            "page": service.page(job["name"]),
        }
        for job in service.newest(config.name, _LAST_RUNS)
    ]
    lines = [f"  {run['created_at']} {run['state']} {run['page']}" for run in runs]
    shown = partial(echo, *_lines(found), *lines)
    return Result({**asdict(found), "last_runs": runs}, shown)


@verb(group=schedule)
@config_argument
def pause(config: Config) -> Result:
    """Start no more runs of NAME; those in progress go on."""
    schedules = VertexSchedules(service_of(config))
    schedules.pause(schedules.get(config.name))
    return _result(schedules.get(config.name))


@verb(group=schedule)
@config_argument
def resume(config: Config) -> Result:
    """Start runs of NAME again."""
    schedules = VertexSchedules(service_of(config))
    schedules.resume(schedules.get(config.name))
    return _result(schedules.get(config.name))


@verb(group=schedule)
@config_argument
def delete(config: Config) -> Result:
    """Delete the schedule of NAME; its runs stay."""
    schedules = VertexSchedules(service_of(config))
    found = schedules.get(config.name)
    schedules.delete(found)
    return Result(
        asdict(found), partial(echo, f"deleted the schedule of {config.name}")
    )


def set_schedule(config: Config) -> ServiceSchedule:
    """Creates the schedule of a pipeline, or changes it in place.

    The pipeline is compiled as it is now: what is changed later runs after the next
    call. Takes as long as importing TFX does.

    Args:
      config: of the pipeline; ``cloud.schedule`` says when.

    Raises:
      UsageError: the config is wrong.
      RemoteError: the service or its storage refuses, or does not answer.
    """
    check_cloud(config)
    wanted = cloud_of(config).schedule
    if wanted is None:
        raise UsageError(
            "neither the command nor the config says when runs start",
            where="cloud.schedule.cron",
            hint="--cron '0 3 * * *', for three o'clock every night",
        )
    schedules = VertexSchedules(service_of(config))
    config = validated(config)
    check_images(config)
    echo("compiling for the service", err=True)
    compiled = compile_checked(config, scheduled=True)
    for warning in compiled.warnings:
        echo_warning(warning)
    with explain_storage(config):
        for item in compiled.uploads:
            upload(item)
    return schedules.put(config.name, wanted, vertex_job(config, compiled.job, {}))


def _result(found: ServiceSchedule) -> Result:
    return Result(asdict(found), partial(echo, *_lines(found)))


def _lines(found: ServiceSchedule) -> list[str]:
    missed = "made up for" if found.catch_up else "left out"
    return [
        f"{found.pipeline}: {found.state}",
        f"  cron: {found.cron}, {found.max_concurrent} at a time, missed runs {missed}",
        f"  next: {found.next_run or 'none'}",
    ]


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
