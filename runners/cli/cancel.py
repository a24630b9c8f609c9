"""``sluice cancel NAME``: stops the run in progress, as Ctrl-C does."""

from __future__ import annotations

from functools import partial

import click

from runners.cli.echo import echo, echo_warning
from runners.cli.options import Result, verb
from runners.operations.cancel import cancel


@verb()
@click.argument("name")
@click.option(
    "run_id", "--run", metavar="ID", help="Needed if several run in a service."
)
def command(name: str, run_id: str | None) -> Result:
    """Stop the run of NAME that is in progress, as Ctrl-C does.

    Its nodes may finish their work; a second call kills them. The run can be resumed.
    One in a service is cancelled there.
    """
    done = cancel(name, run_id)
    if done["warning"]:
        echo_warning(done["warning"])
    what = f"process {done['pid']}" if done["pid"] else done["job"]
    jobs = [f"stopping {job}, which it has started" for job in done["started_jobs"]]
    return Result(done, partial(echo, f"stopping {what}: {done['command']}", *jobs))
