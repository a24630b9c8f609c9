"""``sluice cancel NAME``: stops the run in progress."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

import click

from runners.cli.echo import echo, echo_warning
from runners.cli.options import Result, json_result, workspace_option
from runners.operations import cancel as operations


@click.command()
@click.argument("name")
@click.option(
    "run_id", "--run", metavar="ID", help="Needed if several run in a service."
)
@workspace_option
@json_result
def cancel(name: str, run_id: str | None) -> Result:
    """Stop the run of NAME that is in progress, as Ctrl-C does.

    Its nodes may finish their work; a second call kills them. The run can be resumed.
    One in a service is cancelled there.
    """
    cancelled = operations.cancel(name, run_id)
    what = f"process {cancelled.pid}" if cancelled.pid else cancelled.job
    jobs = [f"stopping {job}, which it has started" for job in cancelled.started_jobs]
    if cancelled.warning:
        echo_warning(cancelled.warning)
    show = partial(echo, f"stopping {what}: {cancelled.command}", *jobs)
    return Result(asdict(cancelled), show)
