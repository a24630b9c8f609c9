"""``sluice config NAME``: prints the resolved config."""

from __future__ import annotations

import json
from typing import Any

import click

from pipeline.config.reference import json_schema
from pipeline.config.serialize import plain_config, to_yaml
from runners.cli.echo import echo, echo_json
from runners.cli.options import config_options, json_option
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
@json_option
def config(as_json: bool, **asked: Any) -> None:
    """Print the resolved config of NAME as YAML, or with --json as JSON."""
    resolved = PipelineRequest(**asked).load_config()
    if as_json:
        facts = {"pipeline": resolved.name, "config": plain_config(resolved)}
        echo_json({"schema_version": 1, **facts})
    else:
        echo(*to_yaml(resolved).rstrip("\n").split("\n"))
