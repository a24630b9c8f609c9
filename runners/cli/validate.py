"""``sluice validate NAME``: checks a config with schema and code; runs nothing."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Literal

import click

from pipeline.config.config import Config
from runners.cli.echo import echo, echo_warning
from runners.cli.options import Result, config_argument, verb
from runners.operations.validate import validate


@verb()
@config_argument
@click.option(
    "--accelerator",
    type=click.Choice(["tpu", "gpu"]),
    help="Check the training for it, on the CPU: for a TPU, XLA compiles the train "
    "and eval step.",
)
def command(config: Config, accelerator: Literal["tpu", "gpu"] | None) -> Result:
    """Check the config NAME without running anything.

    Missing data is only a warning, since it may not have arrived yet. With a profile
    that has a section cloud, such as vertex, the pipeline is compiled for
    the service.
    """
    validated = validate(config, accelerator)
    for warning in validated.warnings:
        echo_warning(warning)
    lines = [f"{validated.file}: valid"]
    if (check := validated.accelerator_check) is not None:
        lines.append(f"{check.accelerator}: {check.checked}")
        if check.assumptions:
            lines.append(f"assumed: {'; '.join(check.assumptions)}")
    return Result(asdict(validated), partial(echo, *lines))
