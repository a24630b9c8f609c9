"""``sluice schedule``: runs that Vertex AI starts by itself."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from pipeline.config.config import Config
from runners.cli.echo import echo, echo_warning
from runners.cli.options import Result, config_argument, verb
from runners.cli.print_schedule import (
    load_with_times,
    print_,
    schedule_of,
    time_options,
)
from runners.cloud.check_cloud import check_cloud
from runners.cloud.compile_spec import compile_checked
from runners.cloud.image import check_images
from runners.cloud.job_inputs import explain_storage, upload
from runners.cloud.vertex_client import (
    VertexService,
    message_of,
    service_of,
    vertex_job,
)
from runners.operations.pipeline_request import validated
from sluice.errors import UsageError

_PREFIX = "sluice-"


@click.group()
def schedule() -> None:
    """Run pipelines on a schedule of Vertex AI, or print one for another scheduler.

    A scheduled run selects the spans, and ends where there is nothing new, or no reason
    to train.
    """


schedule.add_command(print_)


@verb("set", group=schedule)
@time_options
def set_(
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    **asked: str | None,
) -> Result:
    """Create the schedule of NAME, or change it in place; a paused one stays paused.

    The options stand for keys of cloud.schedule. The pipeline runs as it is compiled
    now: set the schedule again after a change.
    """
    config = load_with_times(name, profile, overrides, asked)
    check_cloud(config)
    wanted = schedule_of(config)
    service = service_of(config)
    config = validated(config)
    check_images(config)
    echo("compiling for the service", err=True)
    compiled = compile_checked(config, scheduled=True)
    for warning in compiled.warnings:
        echo_warning(warning)
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
        return _result(service.call(_client(service).update_schedule, request))
    request = {"schedule": item, "parent": service.parent}
    return _result(service.call(_client(service).create_schedule, request))


@verb("list", group=schedule)
@config_argument
def list_(config: Config) -> Result:
    """List the schedules of all pipelines in the project and region of NAME."""
    found = [_facts(item) for item in _all(service_of(config))]
    lines = [line for facts in found for line in _lines(facts)]
    return Result(found, partial(echo, *(lines or ["no pipeline has a schedule"])))


@verb(group=schedule)
@config_argument
def show(config: Config) -> Result:
    """Show the schedule of NAME."""
    return _result(_get(service_of(config), config.name))


@verb(group=schedule)
@config_argument
def pause(config: Config) -> Result:
    """Start no more runs of NAME; those in progress go on."""
    service = service_of(config)
    found = _get(service, config.name)
    service.call(_client(service).pause_schedule, name=found.name)
    return _result(_get(service, config.name))


@verb(group=schedule)
@config_argument
def resume(config: Config) -> Result:
    """Start runs of NAME again."""
    service = service_of(config)
    found = _get(service, config.name)
    # Runs that were due meanwhile, too, if the schedule catches up.
    request = {"name": found.name, "catch_up": found.allow_queueing}
    service.call(_client(service).resume_schedule, request)
    return _result(_get(service, config.name))


@verb(group=schedule)
@config_argument
def delete(config: Config) -> Result:
    """Delete the schedule of NAME; its runs stay."""
    service = service_of(config)
    found = _get(service, config.name)
    service.call(_client(service).delete_schedule, name=found.name)
    told = f"deleted the schedule of {config.name}"
    return Result(_facts(found), partial(echo, told))


def _client(service: VertexService) -> Any:
    from google.cloud.aiplatform_v1 import ScheduleServiceClient

    return service.make_client(ScheduleServiceClient)


def _all(service: VertexService) -> list[Any]:
    """Returns the schedules of all pipelines, oldest first."""
    listed = _client(service).list_schedules
    request = {"parent": service.parent, "order_by": "create_time"}
    found = service.call(lambda timeout: [*listed(request, timeout=timeout)])
    return [item for item in found if item.display_name.startswith(_PREFIX)]


def _find(service: VertexService, pipeline: str) -> Any | None:
    """Returns the schedule of a pipeline, the newest if there are several."""
    name = f"{_PREFIX}{pipeline}"
    found = [item for item in _all(service) if item.display_name == name]
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


def _facts(item: Any) -> dict[str, Any]:
    next_run = item.next_run_time
    return {
        "name": item.name,
        "pipeline": item.display_name.removeprefix(_PREFIX),
        "cron": item.cron,
        "state": item.state.name.lower(),
        "max_concurrent": item.max_concurrent_run_count,
        "catch_up": item.allow_queueing,
        "next_run": next_run.isoformat(timespec="seconds") if next_run else None,
    }


def _result(item: Any) -> Result:
    facts = _facts(item)
    return Result(facts, partial(echo, *_lines(facts)))


def _lines(facts: dict[str, Any]) -> list[str]:
    return [
        f"{facts['pipeline']}: {facts['state']}",
        f"  cron: {facts['cron']}",
        f"  next: {facts['next_run'] or 'none'}",
    ]
