"""``sluice data list|make``: the sample data sets that ship with the dependencies."""

from __future__ import annotations

import click

from pipeline.config.load import load_config
from runners.cli.say import say
from sample_data import catalog


@click.group()
def data() -> None:
    """Real data sets, written as TFRecords into data/ of the project."""


@data.command("list")
def list_data() -> None:
    """List the sample data sets."""
    for name in catalog.names():
        say(f"{name:<10} {catalog.get(name).description}")


@data.command("make")
@click.argument("name")
def make_data(name: str) -> None:
    """Write the data set NAME into data/NAME of the project whose config NAME names.

    Does nothing where it is there and intact.
    """
    catalog.get(name)
    directory = load_config(name).root / "data" / name
    manifest = catalog.make(name, directory)
    counts: dict[str, int] = {}
    for shard in manifest.shards:
        counts[shard.split] = counts.get(shard.split, 0) + shard.records
    splits = ", ".join(f"{split} {count:,}" for split, count in counts.items())
    say(f"{name}: {sum(counts.values()):,} records in {directory} ({splits})")
