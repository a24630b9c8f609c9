"""``sluice logs NAME NODE``: the log of a node, with TensorFlow's output."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import click

from runners.cli.echo import echo_output
from runners.cli.options import Result, json_result, workspace_option
from runners.operations.logs import START, find_log


@click.command()
@click.argument("name")
@click.argument("node", default=START)
@click.option(
    "run_id", "--run", metavar="ID", help="The run; default: the last one with a log."
)
@click.option(
    "--follow", "-f", is_flag=True, help="Follow the log until the run has ended."
)
@workspace_option
@json_result
def logs(name: str, node: str, run_id: str | None, follow: bool) -> Result:
    """Print the log of NODE in a run of NAME; without NODE, that of the run's start.

    With --json, one object with the log's path and its lines.
    """
    log = find_log(name, node, run_id, follow=follow)
    text = log.read()
    facts = {
        "run_id": log.run.record.run_id,
        "node": node,
        "log": str(log.path),
        "lines": text.decode(errors="replace").splitlines(),
    }
    return Result(facts, partial(_print_log, log.follow() if follow else [text]))


def _print_log(parts: Iterable[bytes]) -> None:
    for data in parts:
        echo_output(data.decode(errors="backslashreplace"))
