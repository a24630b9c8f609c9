"""``sluice logs NAME NODE``: the log of a node, with TensorFlow's output."""

from __future__ import annotations

from typing import Any

import click

from runners.cli.echo import echo_json, echo_output, echo_warning
from runners.cli.options import json_option, workspace_option
from runners.operations import logs as operation


@click.command()
@click.argument("name")
@click.argument("node", default=operation.START)
@click.option(
    "run_id", "--run", metavar="ID", help="The run; default: the last one with a log."
)
@click.option(
    "--follow", "-f", is_flag=True, help="Follow the log until the run has ended."
)
@workspace_option
@json_option
def logs(as_json: bool, **asked: Any) -> None:
    """Print the log of NODE in a run of NAME; without NODE, that of the run's start.

    With --json, one object with the log's path and its lines.
    """
    request = operation.LogsRequest(**asked)
    log = operation.logs(request, echo_warning)
    if as_json:
        echo_json(log.to_dict())
        return
    for data in log.follow() if request.follow else log.read():
        echo_output(data.decode(errors="backslashreplace"))
