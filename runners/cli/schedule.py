"""``sluice schedule``: runs that Vertex AI starts by itself."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import click

from pipeline.config.config import Config
from pipeline.config.load import load_config
from runners.cli.echo import EchoObserver, echo
from runners.cli.options import Result, config_argument, config_options, verb
from runners.operations import schedules
from runners.operations.print_schedule import schedule_text
from sluice.workspace import workspace_option


def time_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Adds NAME, ``--profile``, ``--set``, ``--cron`` and ``--timezone``."""
    for option in (
        click.option("--timezone", metavar="ZONE", help="Such as Europe/Berlin."),
        click.option(
            "--cron", metavar="CRON", help="Five fields, such as '0 3 * * *'."
        ),
    ):
        function = option(function)
    return config_options(function)


def load_with_times(
    name: str,
    profile: str | None,
    overrides: Sequence[str],
    asked: Mapping[str, str | None],
) -> Config:
    """Returns the config, with the options that stand for keys of cloud.schedule."""
    keys = [
        f"cloud.schedule.{key}={json.dumps(value)}"
        for key, value in asked.items()
        if value is not None
    ]
    return load_config(name, profile=profile, overrides=(*overrides, *keys))


@click.group()
def command() -> None:
    """Run pipelines on a schedule of Vertex AI, or print one for another scheduler.

    A scheduled run selects the spans, and ends where there is nothing new, or no reason
    to train.
    """


@verb("print", group=command)
@click.option(
    "form",
    "--as",
    type=click.Choice(("cron", "systemd", "airflow")),
    required=True,
    help="What starts the runs.",
)
@time_options
def print_(
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    form: str,
    **asked: str | None,
) -> Result:
    """Print a schedule of NAME for this machine or for Airflow.

    Each run is a 'sluice retrain'. The options stand for keys of cloud.schedule.
    """
    config = load_with_times(name, profile, overrides, asked)
    words = ["retrain", os.path.abspath(config.origin.file), "--wait"]
    words += ["--profile", profile] if profile else []
    words += [part for item in overrides for part in ("--set", item)]
    words += workspace_option()
    text = schedule_text(config, form, words)
    return Result({"as": form, "text": text}, partial(echo, *text.splitlines()))


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
