"""``sluice validate NAME``: checks config, schema and code; runs nothing."""

from __future__ import annotations

from typing import Any

import click

from runners.cli.echo import echo, echo_json
from runners.cli.options import config_options, json_option
from runners.operations import validate as operation
from runners.operations.pipeline_request import PipelineRequest


@click.command()
@config_options
@json_option
def validate(as_json: bool, **asked: Any) -> None:
    """Check the config NAME without running anything or importing TensorFlow.

    Missing data is only a warning, since it may not have arrived yet.
    """
    found = operation.validate(PipelineRequest(**asked))
    for warning in found.warnings:
        echo(*f"warning: {warning}".split("\n"), fg="yellow", err=True)
    if as_json:
        echo_json(found.to_dict())
    else:
        echo(f"{found.file}: valid")
