"""``sluice schedule``: runs that Vertex AI starts by itself."""

from __future__ import annotations

import json
from functools import partial

import click

from pipeline.config.config import Config
from pipeline.config.load import load_config
from runners.cli.echo import EchoObserver, echo
from runners.cli.options import Result, config_argument, config_options, verb
from runners.operations import schedules


@click.group()
def command() -> None:
    """Run pipelines on a schedule of Vertex AI.

    A scheduled run selects the spans, and ends where there is nothing new, or no reason
    to train.
    """


@verb("set", group=command)
@config_options
@click.option("--cron", metavar="CRON", help="Five fields, such as '0 3 * * *'.")
@click.option("--timezone", metavar="ZONE", help="Such as Europe/Berlin.")
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
    keys = [
        f"cloud.schedule.{key}={json.dumps(value)}"
        for key, value in asked.items()
        if value is not None
    ]
    config = load_config(name, profile=profile, overrides=(*overrides, *keys))
    return _result(schedules.set_schedule(config, EchoObserver()))


@verb(group=command)
@config_argument
def show(config: Config) -> Result:
    """Show the schedule of NAME."""
    return _result(schedules.get_schedule(config))


@verb(group=command)
@config_argument
def delete(config: Config) -> Result:
    """Delete the schedule of NAME; its runs stay."""
    deleted = schedules.delete_schedule(config)
    return Result(deleted, partial(echo, f"deleted the schedule of {config.name}"))


def _result(facts: schedules.Facts) -> Result:
    lines = [
        f"{facts['pipeline']}: {facts['state']}",
        f"  cron: {facts['cron']}",
        f"  next: {facts['next_run'] or 'none'}",
    ]
    return Result(facts, partial(echo, *lines))
