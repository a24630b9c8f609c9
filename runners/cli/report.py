"""``sluice report``: draws the page of a run, or of all runs of a pipeline."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Any

import click

from runners.cli.echo import echo, echo_json, echo_warning
from runners.cli.options import json_option, workspace_option
from runners.operations import report as operation


@click.command()
@click.argument("name", required=False)
@click.option("--run", "run_id", metavar="ID", help="The run; default: the last.")
@click.option(
    "--all",
    "all_runs",
    is_flag=True,
    help="The page of all runs of NAME, with trends and a link to each report.",
)
@click.option("--open", "is_opened", is_flag=True, help="Open it in the browser.")
@workspace_option
@json_option
def report(is_opened: bool, as_json: bool, **asked: Any) -> None:
    """Draw the page of the last run of NAME, or of the pipeline that ran last.

    Each run has its page already, report.html in its folder; this draws it again, also
    that of a run in progress, and prints where it is.
    """
    if asked["all_runs"] and (asked["name"] is None or asked["run_id"]):
        raise click.UsageError("--all needs a NAME, and no --run.")
    if asked["run_id"] and asked["name"] is None:
        raise click.UsageError("--run needs the NAME of the pipeline.")
    drawn = operation.report(operation.ReportRequest(**asked), echo_warning)
    if is_opened and not webbrowser.open(Path(drawn.report).as_uri()):
        echo_warning("no browser was found to open it")
    if as_json:
        echo_json(drawn.to_dict())
    else:
        echo(drawn.report)
