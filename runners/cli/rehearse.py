"""``sluice rehearse NAME``: runs the compiled pipeline here, as its service would."""

from __future__ import annotations

from functools import partial
from typing import Any

import click
from rich.console import Console

from runners.cli.echo import echo_json
from runners.cli.options import (
    CliState,
    config_options,
    json_option,
    typed_command,
    wait_option,
    workers_option,
    workspace_option,
)
from runners.cli.render_run import print_outcome
from runners.cli.rich_console import ignore_broken_pipe, make_console, plain
from runners.cli.run_view import RunView
from runners.operations.rehearse import Rehearsal, RehearseRequest, rehearse
from sluice.errors import bounded


@click.command(name="rehearse")
@config_options
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    help="Runs, one after another; where the data has spans, each with a new one. "
    "Default: 2 for a schedule, else 1.",
)
@click.option(
    "--scheduled/--submitted",
    default=None,
    help="Compile for a schedule or for `sluice submit`. Default: a schedule if the "
    "config has cloud.schedule.",
)
@click.option("--image", help="Run the tasks in IMAGE, by Docker.")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.02,
    show_default=True,
    help="How far a metric may be from that of a local run.",
)
@click.option("--no-compare", is_flag=True, help="Do not run the pipeline locally too.")
@click.option(
    "parameters",
    "--parameter",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the compiled pipeline. Repeatable.",
)
@click.option(
    "uploads",
    "--upload",
    multiple=True,
    metavar="PATH=gs://...",
    help="For a compiled FILE: copy PATH into the emulated bucket first. Repeatable.",
)
@workers_option
@wait_option
@workspace_option
@json_option
@click.pass_obj
def rehearse_(
    state: CliState, no_compare: bool, tolerance: float, as_json: bool, **asked: Any
) -> int:
    """Rehearse the pipeline NAME, or a FILE that `sluice compile` wrote.

    The compiled pipeline runs on this machine, each node by its real command line, with
    an emulator of gs:// in place of buckets. Afterwards the same config runs locally,
    and the results are compared.
    """
    request = RehearseRequest(
        command=typed_command(), tolerance=None if no_compare else tolerance, **asked
    )
    console = make_console(to_stderr=as_json)
    with RunView(console) as view:
        found = rehearse(request, view, state.engine)
    ignore_broken_pipe(console, partial(_print, console, found))
    if as_json:
        echo_json(found.to_dict())
    return found.exit_code


def _print(console: Console, found: Rehearsal) -> None:
    for number, record in enumerate(found.records, start=1):
        console.print(plain(f"round {number}: run {record.run_id}", "bold"))
        print_outcome(console, record)
    for number, differences in enumerate(found.differences, start=1):
        if not differences:
            text = f"round {number}: as the local run"
            console.print(plain(text, "green"), soft_wrap=True)
            continue
        text = f"round {number}: {len(differences)} differences from the local run"
        console.print(plain(text, "red"), soft_wrap=True)
        lines = [
            f"{item.what}: {item.local} locally, {item.rehearsed} rehearsed"
            for item in differences
        ]
        for line in bounded(lines, 20):
            console.print(plain(f"  - {line}"), soft_wrap=True)
