"""``sluice predict NAME FILE...``: predicts with the newest pushed model."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from runners.cli.echo import echo_json
from runners.cli.options import config_options, workspace_option
from runners.operations import predict as operation


@click.command()
@config_options
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--limit", type=click.IntRange(1), help="Stop after this many predictions."
)
@click.option("--version", type=int, help="Use this version instead of the newest.")
@click.option(
    "--trust",
    is_flag=True,
    help="Load a version that differs from what was pushed; models can run any code.",
)
@workspace_option
@click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    help="Print an error as a JSON object too; predictions always are.",
)
def predict(**asked: Any) -> None:
    """Predict FILES with the pushed model of NAME; one JSON object per line.

    Each file is TFRecords of tf.Example, an image, or JSON lines of raw features; "-"
    reads JSON lines from standard input. A version is loaded only if it is byte for
    byte what was pushed.
    """
    for prediction in operation.predict(operation.PredictRequest(**asked)):
        echo_json(asdict(prediction))
