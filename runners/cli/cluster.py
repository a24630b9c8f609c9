"""``sluice cluster print NAME``: what trains a pipeline on several machines."""

from __future__ import annotations

from functools import partial

import click

from pipeline.config.config import Config
from runners.cli.echo import echo
from runners.cli.options import Result, config_argument, verb
from runners.operations.print_cluster import jobset_manifest, slurm_script


@click.group()
def command() -> None:
    """Train on several machines of a cluster of your own."""


@verb("print", group=command)
@config_argument
@click.option(
    "form",
    "--as",
    type=click.Choice(("slurm", "jobset")),
    required=True,
    help="A script for sbatch, or a manifest of Kubernetes' JobSet.",
)
@click.option(
    "--nodes", type=click.IntRange(min=2), default=2, help="Machines; default: 2."
)
@click.option("--image", metavar="IMAGE", help="For jobset: the image of Sluice.")
@click.option("--claim", metavar="NAME", help="For jobset: the volume of the project.")
def print_(
    config: Config, form: str, nodes: int, image: str | None, claim: str | None
) -> Result:
    """Print what trains NAME on several machines that share the project's folder.

    The first runs 'sluice run NAME', the others 'sluice worker NAME'.
    """
    if form == "slurm":
        text = slurm_script(config, nodes)
    else:
        text = jobset_manifest(config, nodes, image, claim)
    return Result({"as": form, "text": text}, partial(echo, *text.splitlines()))
