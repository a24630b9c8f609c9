"""``sluice predict NAME FILE...``: predicts with the newest pushed model."""

from __future__ import annotations

from dataclasses import asdict

import click

from pipeline.config.config import Config
from runners.cli.echo import echo_json
from runners.cli.options import config_argument, json_option, workspace_option
from runners.operations import predict as operation


@click.command()
@config_argument
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
@json_option
def predict(
    config: Config,
    files: tuple[str, ...],
    limit: int | None,
    version: int | None,
    trust: bool,
    as_json: bool,
) -> None:
    """Predict FILES with the pushed model of NAME; one JSON object per line.

    Each file is TFRecords of tf.Example, an image, or JSON lines of raw features; "-"
    reads JSON lines from standard input. A version is loaded only if it is byte for
    byte what was pushed. With --json an error is JSON, too.
    """
    for prediction in operation.predict(
        config, files, limit=limit, version=version, trust=trust
    ):
        echo_json(asdict(prediction))
