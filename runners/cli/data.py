"""``sluice data list|make``: the sample data sets."""

from __future__ import annotations

import click

from runners.cli.echo import echo
from runners.operations import make_data as operation
from sample_data import catalog


@click.group()
def data() -> None:
    """Real data sets, written as TFRecords into data/ of the project."""


@data.command("list")
def list_data() -> None:
    """List the sample data sets."""
    for name in catalog.names():
        echo(f"{name:<10} {catalog.get(name).description}")


@data.command("make")
@click.argument("name")
def make_data(name: str) -> None:
    """Write the data set NAME into data/NAME of the project whose config NAME names.

    Does nothing where it is there and intact.
    """
    made = operation.make_data(name)
    splits = ", ".join(f"{split} {count:,}" for split, count in made.records.items())
    total = sum(made.records.values())
    echo(f"{name}: {total:,} records in {made.directory} ({splits})")
