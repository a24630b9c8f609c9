"""``sluice validate NAME``: checks config, schema and code; runs nothing."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Literal

import click

from pipeline.config.config import Config
from runners.cli.echo import echo, echo_warning
from runners.cli.options import Result, config_argument, json_result
from runners.operations import validate as operation


@click.command()
@config_argument
@click.option(
    "--accelerator",
    type=click.Choice(["tpu", "gpu"]),
    help="Check the training for it, on the CPU: for a TPU, XLA compiles the train "
    "and eval step.",
)
@json_result
def validate(config: Config, accelerator: Literal["tpu", "gpu"] | None) -> Result:
    """Check the config NAME without running anything.

    Missing data is only a warning, since it may not have arrived yet. With a profile
    that has a section cloud, such as vertex, the pipeline is compiled for
    the service.
    """
    found = operation.validate(config, accelerator)
    for warning in found.warnings:
        echo_warning(warning)
    lines = [f"{found.file}: valid"]
    if (check := found.accelerator_check) is not None:
        lines.append(f"{check.accelerator}: {check.checked}")
        if check.assumptions:
            lines.append(f"assumed: {'; '.join(check.assumptions)}")
        lines.append(f"not checked: {'; '.join(check.unchecked)}")
    return Result(asdict(found), partial(echo, *lines))
