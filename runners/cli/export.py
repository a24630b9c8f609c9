"""``sluice export mlflow NAME``: writes runs into an MLflow tracking store."""

from __future__ import annotations

from functools import partial

import click

from runners.cli.echo import EchoObserver, echo
from runners.cli.options import Result, verb
from runners.operations.export_mlflow import export_to_mlflow


@click.group()
def command() -> None:
    """Export runs for other tools."""


@verb(group=command)
@click.argument("name")
@click.option(
    "--to",
    metavar="DIR|URI",
    help="A directory or a tracking URI; default: mlruns beside the workspace.",
)
def mlflow(name: str, to: str | None) -> Result:
    """Write the runs of the pipeline NAME into an MLflow tracking store.

    Parameters, metrics per slice and per epoch, tags, report.html and run.json. A run
    that was exported before is not written again.
    """
    facts = export_to_mlflow(name, to, EchoObserver())
    text = f"exported {len(facts['runs'])} runs to the experiment "
    text += f"{facts['experiment']!r} in {facts['uri']}"
    others = f"exported before: {len(facts['unchanged'])}; in progress: "
    others += f"{len(facts['unfinished'])}"
    return Result(facts, partial(echo, text, others))
