"""``sluice schema show NAME``: the reviewed schema as a table."""

from __future__ import annotations

import json

import click
from rich.table import Table

from pipeline.load_config import load_config
from runners.cli.console import make_console, plain
from runners.cli.options import config_options, json_option
from runners.cli.schema_source import sensitive_of
from schemas.loader import load
from schemas.show_schema import show_schema


@click.command()
@config_options
@json_option
def show(
    name: str, profile: str | None, overrides: tuple[str, ...], as_json: bool
) -> None:
    """Show the reviewed schema of the pipeline NAME as a table."""
    config = load_config(name, profile=profile, overrides=overrides)
    rows = show_schema(load(config.schema_path), sensitive_of(config))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    titles = list(rows[0].to_dict())
    for title in titles:
        table.add_column(title, no_wrap=title in ("feature", "type"), overflow="fold")
    for row in rows:
        table.add_row(*(plain(cell) for cell in row.to_dict().values()))
    console = make_console(to_stderr=as_json)
    console.print(plain(f"{config.schema_path}\n", "dim"), soft_wrap=True)
    console.print(table)
    if as_json:
        document = {
            "schema_version": 1,
            "pipeline": config.name,
            "schema": str(config.schema_path),
            "features": [row.to_dict() for row in rows],
        }
        click.echo(json.dumps(document))
