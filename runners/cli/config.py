"""``sluice config NAME``: prints the resolved config."""

from __future__ import annotations

import json
from functools import partial

import click

from pipeline.config.config import Config
from pipeline.config.reference import json_schema
from pipeline.config.serialize import plain_config, to_yaml
from runners.cli.echo import echo
from runners.cli.options import Result, config_argument, verb


def _print_schema(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        echo(*json.dumps(json_schema(), indent=2).splitlines())
        ctx.exit()


@verb()
@config_argument
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON schema of all configs, for editors; NAME is not needed.",
)
def command(config: Config) -> Result:
    """Print the resolved config of NAME as YAML, or with --json as JSON."""
    lines = to_yaml(config).rstrip("\n").split("\n")
    facts = {"pipeline": config.name, "config": plain_config(config)}
    return Result(facts, partial(echo, *lines))
