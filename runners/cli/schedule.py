"""``sluice schedule``: runs that a service starts by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from runners.cli.echo import echo, echo_json, echo_warning
from runners.cli.options import config_options, json_option, workspace_option
from runners.cli.rich_console import make_console, make_table, plain
from runners.engine import Observer
from runners.operations import schedule as operations
from runners.operations.schedule import ScheduleRequest, ScheduleView

_ENGINE = click.option(
    "--engine",
    type=click.Choice(["vertex", "kubeflow"]),
    help="Default: the config's cloud.engine.",
)
_TIME = "%Y-%m-%d %H:%M %z"


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (json_option, workspace_option, _ENGINE, config_options):
        function = option(function)
    return function


class _Terminal(Observer):
    """Prints warnings and notes to stderr."""

    def on_warning(self, text: str) -> None:
        echo_warning(text)

    def on_note(self, text: str) -> None:
        echo(text, err=True)


@click.group()
def schedule() -> None:
    """Run pipelines on a schedule of Vertex AI or Kubeflow Pipelines.

    A pipeline has one schedule per service, of its name. The first node of a scheduled
    run selects the spans, and stops the run where there is nothing new.
    """


@schedule.command(name="set")
@click.option("--cron", metavar="CRON", help="Five fields, such as '0 3 * * *'.")
@click.option(
    "--timezone",
    metavar="ZONE",
    help="Such as Europe/Berlin; default: that of Kubeflow's installation, else UTC.",
)
@click.option(
    "--max-concurrent",
    type=click.IntRange(min=1, max=10),
    help="Runs at the same time, at most; default: 1.",
)
@click.option(
    "--catch-up/--no-catch-up",
    default=None,
    help="Whether missed runs are made up for; default: no.",
)
@_options
def set_(as_json: bool, **asked: Any) -> None:
    """Create the schedule of NAME, or change it in place; a paused one stays paused.

    The pipeline runs as it is compiled now: set the schedule again after a change.
    """
    request = operations.SetScheduleRequest(**asked)
    _print(operations.set_schedule(request, _Terminal()), as_json)


@schedule.command(name="list")
@_options
def list_(as_json: bool, **asked: Any) -> None:
    """List the schedules of all pipelines in the service that NAME's config names."""
    views = operations.list_schedules(ScheduleRequest(**asked))
    if as_json:
        echo_json([view.to_dict() for view in views])
        return
    if not views:
        echo("no pipeline has a schedule; try: sluice schedule set NAME --cron CRON")
        return
    table = make_table("pipeline", "cron", "timezone", "state", "next run")
    for view in views:
        found = view.schedule
        soon = view.next_times[0].strftime(_TIME) if view.next_times else ""
        cells = (found.pipeline, found.cron, found.timezone, found.state, soon)
        table.add_row(*map(plain, cells))
    make_console().print(table)


@schedule.command()
@_options
def show(as_json: bool, **asked: Any) -> None:
    """Show the schedule of NAME, its next five times and the last runs."""
    _print(operations.show_schedule(ScheduleRequest(**asked)), as_json)


@schedule.command()
@_options
def pause(as_json: bool, **asked: Any) -> None:
    """Start no more runs of NAME; those in progress go on."""
    _print(operations.pause_schedule(ScheduleRequest(**asked)), as_json)


@schedule.command()
@_options
def resume(as_json: bool, **asked: Any) -> None:
    """Start runs of NAME again."""
    _print(operations.resume_schedule(ScheduleRequest(**asked)), as_json)


@schedule.command()
@_options
def delete(as_json: bool, **asked: Any) -> None:
    """Delete the schedule of NAME; its runs stay."""
    view = operations.delete_schedule(ScheduleRequest(**asked))
    if as_json:
        echo_json(view.to_dict())
    else:
        echo(f"deleted the schedule of {view.schedule.pipeline}")


def _print(view: ScheduleView, as_json: bool) -> None:
    if as_json:
        echo_json(view.to_dict())
        return
    found = view.schedule
    at_once = f"{found.max_concurrent} at a time"
    but = " but for the last one" if view.engine == "kubeflow" else ""
    missed = "made up for" if found.catch_up else f"left out{but}"
    echo(
        f"{found.pipeline} on {operations.SERVICES[view.engine]}: {found.state}",
        f"  cron: {found.cron} ({found.timezone}), {at_once}, missed runs {missed}",
    )
    if view.next_times:
        echo("  next:", *(f"    {time.strftime(_TIME)}" for time in view.next_times))
    if view.last_runs:
        echo("  last:")
    for run in view.last_runs:
        echo(f"    {run.created_at} {run.state} {run.page or ''}".rstrip())
