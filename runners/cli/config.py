"""``sluice config NAME``: prints the resolved config."""

from __future__ import annotations

import json
from typing import Any

import click

from pipeline.config.reference import json_schema
from pipeline.config.serialize import to_yaml
from runners.cli.echo import echo
from runners.cli.options import config_options
from runners.operations.pipeline_request import PipelineRequest


def _print_schema(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        echo(*json.dumps(json_schema(), indent=2).splitlines())
        ctx.exit()


@click.command()
@config_options
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON schema of all configs, for editors; NAME is not needed.",
)
def config(**asked: Any) -> None:
    """Print the resolved config of NAME as YAML."""
    resolved = PipelineRequest(**asked).load_config()
    echo(*to_yaml(resolved).rstrip("\n").split("\n"))
