"""``sluice data list|make``: the data sets that Sluice can write as TFRecords."""

from __future__ import annotations

from typing import Any

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
    """List the data sets: content and source, and the licence of the data."""
    data_sets = [catalog.get(name) for name in catalog.names()]
    if as_json:
        keys = ("name", "description", "licence")
        rows = [{key: getattr(item, key) for key in keys} for item in data_sets]
        echo_json({"schema_version": 1, "data_sets": rows})
        return
    for item in data_sets:
        echo(f"{item.name:<14} {item.description}; licence: {item.licence}")


@data.command("make")
@click.argument("name")
@click.option(
    "source",
    "--from",
    metavar="DIR",
    help="Where the data set's own files are. Without it they are downloaded.",
)
@click.option(
    "directory",
    "--to",
    metavar="DIR",
    help="Write there instead of data/NAME of the project.",
)
@click.option("--label", metavar="COLUMN", help="The label's column of a CSV file.")
@click.option(
    "--seed",
    default=catalog.DEFAULT_SEED,
    show_default=True,
    help="Decides the splits and the order of the records.",
)
@json_option
def make_data(as_json: bool, **asked: Any) -> None:
    """Write the data set NAME into data/NAME of the project.

    Nothing is written if it is there and intact.
    """
    made = operation.make_data(**asked, report=lambda line: echo(line, err=True))
    if as_json:
        echo_json(made.to_dict())
        return
    splits = ", ".join(f"{split} {count:,}" for split, count in made.records.items())
    total = sum(made.records.values())
    echo(f"{made.name}: {total:,} records in {made.directory} ({splits})")
