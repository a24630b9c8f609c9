"""``sluice schema infer|show|diff|accept``: the reviewed schema and the data."""

from __future__ import annotations

import click

from runners.cli.schema_accept import accept
from runners.cli.schema_diff import diff
from runners.cli.schema_infer import infer
from runners.cli.schema_show import show


@click.group()
def schema() -> None:
    """The reviewed schema of a pipeline, and what the data says of it."""


for _verb in (show, diff, accept, infer):
    schema.add_command(_verb)
