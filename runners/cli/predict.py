"""``sluice predict NAME FILE...``: predicts with the newest pushed model."""

from __future__ import annotations

from dataclasses import asdict

import click

from pipeline.config.config import Config
from runners.cli.echo import echo_json
from runners.cli.options import config_argument, verb
from runners.operations.predict import predict


@verb()
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
def command(
    config: Config,
    files: tuple[str, ...],
    limit: int | None,
    version: int | None,
    trust: bool,
) -> None:
    """Predict FILES with the pushed model of NAME; one JSON object per line.

    Each file is TFRecords of tf.Example, an image, or JSON lines of raw features; "-"
    reads JSON lines from standard input. A version is loaded only if it is byte for
    byte what was pushed. With --json an error is JSON, too.
    """
    for prediction in predict(config, files, limit=limit, version=version, trust=trust):
        # A regression has no label, other models no `prediction`.
        answer = asdict(prediction).items()
        echo_json({name: value for name, value in answer if value is not None})
