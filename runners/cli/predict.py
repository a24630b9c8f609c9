"""``sluice predict NAME FILE...``: asks the newest pushed model."""

from __future__ import annotations

import json
import os
from dataclasses import asdict

import click

from pipeline.load_config import load_config
from runners.cli.next_command import next_command
from runners.cli.options import config_options, serving_dir_of, workspace_option
from serving.model_store import ModelStore
from sluice.errors import UsageError


@click.command()
@config_options
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--limit", type=click.IntRange(1), help="Stop after this many predictions."
)
@click.option("--version", type=int, help="Ask this version instead of the newest.")
@workspace_option
def predict(
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    files: tuple[str, ...],
    limit: int | None,
    version: int | None,
    workspace_dir: str | None,
) -> None:
    """Ask the pushed model of NAME about FILES; one JSON object per line.

    Each file is TFRecords of tf.Example, an image, or JSON lines of raw features; "-"
    reads JSON lines from standard input.
    """
    config = load_config(name, profile=profile, overrides=overrides)
    store = ModelStore(serving_dir_of(config, workspace_dir))
    versions = {item.version: item for item in store.versions()}
    if not versions:
        raise UsageError(
            f"no version of {name} is pushed yet",
            where=store.root,
            hint=next_command("run", name),
        )
    if version is not None and version not in versions:
        raise UsageError(
            f"there is no version {version}",
            where=store.root,
            expected=", ".join(map(str, sorted(versions))),
        )
    # Native libraries print errors about absent GPUs at import; failures still raise.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from serving.predictor import Predictor

    chosen = versions[max(versions) if version is None else version]
    for prediction in Predictor(chosen.path).predict_files(list(files), limit=limit):
        click.echo(json.dumps(asdict(prediction)))
