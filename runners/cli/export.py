"""``sluice export mlflow NAME``: runs for other tools."""

from __future__ import annotations

from typing import Any

import click

from runners.cli.echo import echo, echo_json, echo_warning
from runners.cli.options import json_option, workspace_option
from runners.operations import export_mlflow as operation


@click.group()
def export() -> None:
    """Export runs for other tools."""


@export.command("mlflow")
@click.argument("name")
@click.option("run_id", "--run", metavar="ID", help="Export one run; default: all.")
@click.option(
    "--to",
    metavar="DIR|URI",
    help="A directory or a tracking URI; default: mlruns beside the workspace.",
)
@workspace_option
@json_option
def mlflow(as_json: bool, **asked: Any) -> None:
    """Write the runs of the pipeline NAME into an MLflow tracking store.

    Parameters, metrics per slice and per epoch, tags, report.html and run.json. A run
    that was exported before is not written again.
    """
    done = operation.export_mlflow(operation.ExportRequest(**asked), echo_warning)
    if as_json:
        echo_json(done.to_dict())
        return
    echo(f"exported {len(done.runs)} runs to the experiment {done.experiment!r}")
    if done.unchanged:
        echo(f"{len(done.unchanged)} runs were exported before")
    if done.unfinished:
        echo(f"not exported, in progress: {', '.join(done.unfinished)}")
    is_file = done.uri.startswith("file:")
    # MLflow 3 refuses a file store without it.
    setting = "MLFLOW_ALLOW_FILE_STORE=true " if is_file else ""
    echo(f"view: {setting}mlflow ui --backend-store-uri {done.uri}")
