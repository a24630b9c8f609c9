"""``sluice rehearse NAME``: runs the compiled pipeline here, as its service would."""

from __future__ import annotations

import click

from runners.cli.diff import print_comparison
from runners.cli.options import (
    Result,
    config_options,
    typed_command,
    verb,
    wants_json,
)
from runners.cli.rich_console import make_console, say
from runners.cli.run_view import RunView, print_outcome
from runners.operations.rehearse import rehearse
from sluice.errors import ExitCode


@verb()
@config_options
@click.option("--no-compare", is_flag=True, help="Do not run the pipeline locally too.")
def command(
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    no_compare: bool,
) -> Result:
    """Rehearse the pipeline NAME on this machine.

    The compiled pipeline runs task after task, each by its real command line, with a
    folder in place of buckets. Then the same config runs locally, and both are
    compared. A further call finds the model of the first one as its baseline.
    """
    console = make_console(to_stderr=wants_json())
    with RunView(console) as view:
        rehearsed = rehearse(
            name,
            profile=profile,
            overrides=overrides,
            is_compared=not no_compare,
            command=typed_command(),
            observer=view,
        )
    record, local = rehearsed.record, rehearsed.local
    print_outcome(console, record)
    facts = {"record": record.to_dict(), "local": None, "comparison": None}
    if local is None or rehearsed.comparison is None:
        return Result(facts, exit_code=record.exit_code or 0)
    print_comparison(console, rehearsed.comparison)
    facts |= {"local": local.to_dict(), "comparison": rehearsed.comparison.to_dict()}
    if rehearsed.is_as_locally:
        say(console, "the gates have decided as in the local run", "green")
        return Result(facts, exit_code=local.exit_code or 0)
    say(console, "a gate has decided otherwise than in the local run", "red")
    return Result(facts, exit_code=local.exit_code or ExitCode.NODE)
