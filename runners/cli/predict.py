"""``sluice predict NAME FILE...``: asks the newest pushed model."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from pipeline.config.load import load_config
from runners.cli.next_command import next_command
from runners.cli.options import config_options, serving_dir_of, workspace_option
from runners.cli.say import say_json
from serving.model_store import ModelStore, ModelVersion
from sluice.errors import ServingError, UsageError


@click.command()
@config_options
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--limit", type=click.IntRange(1), help="Stop after this many predictions."
)
@click.option("--version", type=int, help="Ask this version instead of the newest.")
@click.option(
    "--trust",
    is_flag=True,
    help="Load a version that is not what was pushed; a model can run any code.",
)
@workspace_option
def predict(
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    files: tuple[str, ...],
    limit: int | None,
    version: int | None,
    trust: bool,
    workspace_dir: str | None,
) -> None:
    """Ask the pushed model of NAME about FILES; one JSON object per line.

    Each file is TFRecords of tf.Example, an image, or JSON lines of raw features; "-"
    reads JSON lines from standard input. Only a version that is what was pushed, byte
    for byte, is loaded.
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
    chosen = versions[max(versions) if version is None else version]
    if not trust:
        _check_pushed(chosen)
    # Native libraries print errors about absent GPUs at import; failures still raise.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from serving.predictor import Predictor

    predictions = Predictor(chosen.path).predict_files(
        list(files), limit=limit, max_row_bytes=config.examples.max_record_bytes
    )
    for prediction in predictions:
        say_json(asdict(prediction))


def _check_pushed(chosen: ModelVersion) -> None:
    """Refuses a version that the store has not recorded, or that has changed since."""
    if difference := chosen.difference():
        raise ServingError(
            f"Version {chosen.version} is not what was pushed; it was not loaded.",
            where=chosen.path,
            expected=f"files with the digest {chosen.digest}"
            if chosen.digest
            else "a version that Sluice has pushed",
            actual=difference,
            hint="ask another with --version, or push again; --trust loads this one, "
            "and whatever code is in it runs",
        )
