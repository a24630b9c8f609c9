"""``sluice rehearse NAME``: runs the compiled pipeline here, as its service would."""

from __future__ import annotations

from functools import partial

import click
from rich.console import Console

from runners.cli.diff import print_comparison
from runners.cli.echo import echo_json
from runners.cli.options import (
    CliState,
    config_options,
    json_option,
    typed_command,
    workspace_option,
)
from runners.cli.render_run import print_outcome
from runners.cli.rich_console import ignore_broken_pipe, make_console, say
from runners.cli.run_view import RunView
from runners.operations.rehearse import Rehearsed, rehearse


@click.command(name="rehearse")
@config_options
@click.option(
    "--scheduled/--submitted",
    default=None,
    help="Compile for a schedule or for `sluice submit`. Default: a schedule if the "
    "config has cloud.schedule.",
)
@click.option("--fresh", is_flag=True, help="Forget earlier rehearsals.")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.02,
    show_default=True,
    help="How far a metric may be from that of a local run.",
)
@click.option("--no-compare", is_flag=True, help="Do not run the pipeline locally too.")
@workspace_option
@json_option
@click.pass_obj
def rehearse_(
    state: CliState,
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    scheduled: bool | None,
    fresh: bool,
    tolerance: float,
    no_compare: bool,
    as_json: bool,
) -> int:
    """Rehearse the pipeline NAME on this machine.

    The compiled pipeline runs task after task, each by its real command line, with a
    folder in place of buckets. Then the same config runs locally, and both are
    compared. A further call finds the model of the first one as its baseline.
    """
    console = make_console(to_stderr=as_json)
    with RunView(console) as view:
        found = rehearse(
            name,
            profile=profile,
            overrides=overrides,
            command=typed_command(),
            scheduled=scheduled,
            fresh=fresh,
            tolerance=None if no_compare else tolerance,
            observer=view,
            engine=state.engine,
        )
    ignore_broken_pipe(console, partial(_print, console, found))
    if as_json:
        echo_json(
            {
                "schema_version": 1,
                "exit_code": found.exit_code,
                "record": found.record.to_dict(),
                "local": found.local and found.local.to_dict(),
                "differences": list(found.differences),
            }
        )
    return found.exit_code


def _print(console: Console, found: Rehearsed) -> None:
    print_outcome(console, found.record)
    if found.comparison is not None:
        print_comparison(console, found.comparison)
        for line in found.differences:
            say(console, line, "red")
        if not found.differences:
            say(console, "verdicts and metrics are those of the local run", "green")
