"""``sluice data list|make``: the sample data sets."""

from __future__ import annotations

import click

from runners.cli.echo import echo, echo_json
from runners.cli.options import json_option
from runners.operations import make_data as operation
from sample_data import catalog


@click.group()
def data() -> None:
    """Sample data sets: real data, written as TFRecords into data/ of the project."""


@data.command("list")
@json_option
def list_data(as_json: bool) -> None:
    """List the sample data sets."""
    described = {name: catalog.get(name).description for name in catalog.names()}
    if as_json:
        rows = [{"name": x, "description": text} for x, text in described.items()]
        echo_json({"schema_version": 1, "data_sets": rows})
        return
    for name, description in described.items():
        echo(f"{name:<10} {description}")


@data.command("make")
@click.argument("name")
@json_option
def make_data(name: str, as_json: bool) -> None:
    """Write the data set NAME into data/NAME of the project that has its config.

    Nothing is written if it is there and intact.
    """
    made = operation.make_data(name)
    if as_json:
        echo_json(made.to_dict())
        return
    splits = ", ".join(f"{split} {count:,}" for split, count in made.records.items())
    total = sum(made.records.values())
    echo(f"{name}: {total:,} records in {made.directory} ({splits})")
