"""``sluice data list|make``: the sample data sets that ship with the dependencies."""

from __future__ import annotations

from pathlib import Path

import click

from sample_data import catalog
from sluice.errors import UsageError
from sluice.project import find_root, own_root


@click.group()
def data() -> None:
    """Real data sets, written as TFRecords into data/ of the project."""


@data.command("list")
def list_data() -> None:
    """List the sample data sets."""
    for name in catalog.names():
        click.echo(f"{name:<10} {catalog.get(name).description}")


@data.command("make")
@click.argument("name")
def make_data(name: str) -> None:
    """Write the data set NAME; does nothing where it is there and intact."""
    directory = _root() / "data" / name
    manifest = catalog.make(name, directory)
    counts: dict[str, int] = {}
    for shard in manifest.shards:
        counts[shard.split] = counts.get(shard.split, 0) + shard.records
    splits = ", ".join(f"{split} {count:,}" for split, count in counts.items())
    click.echo(f"{name}: {sum(counts.values()):,} records in {directory} ({splits})")


def _root() -> Path:
    """Returns the project that the user is in, else the one that Sluice came with."""
    try:
        return find_root(Path.cwd())
    except UsageError:
        return own_root()
