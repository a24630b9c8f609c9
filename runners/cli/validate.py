"""``sluice validate NAME``: checks config, schema and code; runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from runners.cli.echo import echo, echo_json
from runners.cli.options import config_options, json_option
from runners.operations import validate as operation
from runners.operations.pipeline_request import PipelineRequest

if TYPE_CHECKING:
    from pipeline.training.rehearsal.result import Rehearsal


@click.command()
@config_options
@click.option(
    "--accelerator",
    type=click.Choice(["tpu", "gpu"]),
    help="Rehearse the training for it, on the CPU: for a TPU, XLA compiles the train "
    "and eval step.",
)
@json_option
def validate(
    accelerator: Literal["tpu", "gpu"] | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Check the config NAME without running anything.

    Missing data is only a warning, since it may not have arrived yet. With a profile
    that has a section cloud, such as vertex, the pipeline is compiled and linted for
    the service. Without one and without --accelerator, TensorFlow is not imported.
    """
    found = operation.validate(PipelineRequest(**asked), accelerator)
    for warning in found.warnings:
        echo(*f"warning: {warning}".split("\n"), fg="yellow", err=True)
    if as_json:
        echo_json(found.to_dict())
        return
    echo(f"{found.file}: valid")
    if found.rehearsal is not None:
        _print_rehearsal(found.rehearsal)


def _print_rehearsal(rehearsal: Rehearsal) -> None:
    echo(f"{rehearsal.accelerator}: {rehearsal.checked}")
    if rehearsal.assumptions:
        echo(f"assumed: {'; '.join(rehearsal.assumptions)}")
    echo(f"not checked: {'; '.join(rehearsal.unchecked)}")
