"""``sluice schedule``: runs that Vertex AI starts by itself."""

from __future__ import annotations

from functools import partial

import click

from pipeline.config.config import Config
from runners.cli.echo import EchoObserver, echo
from runners.cli.options import Result, config_argument, verb
from runners.cli.print_schedule import (
    load_with_times,
    print_,
    schedule_of,
    time_options,
)
from runners.operations import schedules


@click.group()
def command() -> None:
    """Run pipelines on a schedule of Vertex AI, or print one for another scheduler.

    A scheduled run selects the spans, and ends where there is nothing new, or no reason
    to train.
    """


command.add_command(print_)


@verb("set", group=command)
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
    schedule_of(config)
    return _result(schedules.set_schedule(config, EchoObserver()))


@verb("list", group=command)
@config_argument
def list_(config: Config) -> Result:
    """List the schedules of all pipelines in the project and region of NAME."""
    listed = schedules.list_schedules(config)
    lines = [line for facts in listed for line in _lines(facts)]
    return Result(listed, partial(echo, *(lines or ["no pipeline has a schedule"])))


@verb(group=command)
@config_argument
def show(config: Config) -> Result:
    """Show the schedule of NAME."""
    return _result(schedules.get_schedule(config))


@verb(group=command)
@config_argument
def pause(config: Config) -> Result:
    """Start no more runs of NAME; those in progress go on."""
    return _result(schedules.pause_schedule(config))


@verb(group=command)
@config_argument
def resume(config: Config) -> Result:
    """Start runs of NAME again."""
    return _result(schedules.resume_schedule(config))


@verb(group=command)
@config_argument
def delete(config: Config) -> Result:
    """Delete the schedule of NAME; its runs stay."""
    deleted = schedules.delete_schedule(config)
    return Result(deleted, partial(echo, f"deleted the schedule of {config.name}"))


def _result(facts: schedules.Facts) -> Result:
    return Result(facts, partial(echo, *_lines(facts)))


def _lines(facts: schedules.Facts) -> list[str]:
    return [
        f"{facts['pipeline']}: {facts['state']}",
        f"  cron: {facts['cron']}",
        f"  next: {facts['next_run'] or 'none'}",
    ]
