"""``sluice validate NAME``: checks a config with schema and code; runs nothing."""

from __future__ import annotations

from functools import partial

import click

from pipeline.config.config import Config
from runners.cli.echo import echo, echo_warning
from runners.cli.options import Result, config_argument, verb
from runners.operations.validate import validate


@verb()
@config_argument
@click.option(
    "--accelerator",
    type=click.Choice(["tpu"]),
    help="Also let XLA compile the train and eval step, on the CPU.",
)
def command(config: Config, accelerator: str | None) -> Result:
    """Check the config NAME without running anything.

    Missing data is only a warning, since it may not have arrived yet. With a profile
    that has a section cloud, such as vertex, the pipeline is compiled for
    the service.
    """
    warnings = validate(config, on_tpu=accelerator is not None)
    for warning in warnings:
        echo_warning(warning)
    file = config.origin.file
    facts = {"pipeline": config.name, "file": file, "warnings": warnings}
    return Result(facts, partial(echo, f"{file}: valid"))
