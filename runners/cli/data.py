"""``sluice data list|make``: the data sets that Sluice can write as TFRecords."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import click

from pipeline.config.find import find_config
from runners.cli.echo import echo
from runners.cli.options import Result, verb
from sample_data import catalog
from sluice.errors import UsageError
from sluice.project import current_project, find_root


@click.group()
def command() -> None:
    """Sample data sets: real data, written as TFRecords into data/ of the project."""


@verb("list", group=command)
def list_() -> Result:
    """List the data sets: content and source, and the licence of the data."""
    keys = ("name", "description", "licence")
    data_sets = [catalog.get(name) for name in catalog.names()]
    rows = [{key: getattr(item, key) for key in keys} for item in data_sets]
    lines = [f"{x.name:<14} {x.description}; licence: {x.licence}" for x in data_sets]
    return Result({"data_sets": rows}, partial(echo, *lines))


@verb(group=command)
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
@click.option("--skip-bad", is_flag=True, help="Leave out files that are no images.")
@click.option(
    "--seed",
    default=catalog.DEFAULT_SEED,
    show_default=True,
    help="Decides the splits and the order of the records.",
)
def make(
    name: str,
    source: str | None,
    directory: str | None,
    seed: int,
    skip_bad: bool,
) -> Result:
    """Write the data set NAME into data/NAME of the project.

    Nothing is written if it is there and intact.
    """
    files = Path(source) if source is not None else None
    if files and not files.exists():
        raise UsageError("there is nothing at this path", where=files)
    target = Path(directory) if directory else _root(name) / "data" / name
    made = catalog.make(
        name,
        target,
        source=files,
        seed=seed,
        skip_bad=skip_bad,
        report=lambda line: echo(line, err=True),
    )
    records: Counter[str] = Counter()
    for shard in made.shards:
        records[shard.split] += shard.records
    splits = ", ".join(f"{split} {count:,}" for split, count in records.items())
    text = f"{name}: {sum(records.values()):,} records in {target} ({splits})"
    facts = {"name": name, "path": str(target), "records": records}
    return Result(facts, partial(echo, text))


def _root(name: str) -> Path:
    """Returns the project that has a config of this name, or else the current one."""
    try:
        return find_root(find_config(name, Path.cwd()).parent)
    except UsageError:
        return current_project(Path.cwd())
