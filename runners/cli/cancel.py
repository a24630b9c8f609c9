"""``sluice cancel NAME``: stops the run in progress."""

from __future__ import annotations

from typing import Any

import click

from runners.cli.echo import echo, echo_json, echo_warning
from runners.cli.options import json_option, workspace_option
from runners.operations import cancel as operations


@click.command()
@click.argument("name")
@click.option(
    "run_id", "--run", metavar="ID", help="One in a service; needed if several run."
)
@workspace_option
@json_option
def cancel(as_json: bool, **asked: Any) -> None:
    """Stop the run of NAME that is in progress, as Ctrl-C does.

    Its nodes may finish their work; a second call kills them. The run can be resumed.
    One in a service is cancelled there.
    """
    cancelled = operations.cancel(operations.CancelRequest(**asked))
    if as_json:
        echo_json(cancelled.to_dict())
    elif cancelled.ended:
        echo(f"ended: {cancelled.command}")
    elif cancelled.job:
        echo(f"cancelling {cancelled.job}: {cancelled.command}")
    else:
        pids = " and ".join(map(str, cancelled.pids))
        echo(f"stopping process {pids}: {cancelled.command}")
    if not as_json:
        for name in cancelled.started_jobs:
            echo(f"cancelling {name}, which the run has started")
        if cancelled.warning:
            echo_warning(cancelled.warning)
