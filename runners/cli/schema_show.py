"""``sluice schema show NAME``: the reviewed schema as a table."""

from __future__ import annotations

import click
from rich.table import Table

from pipeline.config.load import load_config
from runners.cli.console import make_console, plain
from runners.cli.options import config_options, json_option
from runners.cli.say import say_json
from schemas.loader import load
from schemas.show_schema import show_schema


@click.command(short_help="Show the reviewed schema as a table.")
@config_options
@json_option
def show(
    name: str, profile: str | None, overrides: tuple[str, ...], as_json: bool
) -> None:
    """Show the reviewed schema of the pipeline NAME as a table."""
    config = load_config(name, profile=profile, overrides=overrides)
    rows = show_schema(load(config.schema_path), config.sensitive)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    cells = [row.to_dict() for row in rows]
    # Most schemas have no comparators, and a narrow window has no room for them.
    titles = [title for title in cells[0] if any(row[title] for row in cells)]
    for title in titles:
        table.add_column(
            title,
            no_wrap=title in ("feature", "type"),
            overflow="fold",
            min_width=len(title),
        )
    for row in cells:
        table.add_row(*(plain(row[title]) for title in titles))
    console = make_console(to_stderr=as_json)
    console.print(plain(str(config.schema_path), "dim"), soft_wrap=True)
    console.print()
    console.print(table)
    if as_json:
        document = {
            "schema_version": 1,
            "pipeline": config.name,
            "schema": str(config.schema_path),
            "features": [row.to_dict() for row in rows],
        }
        say_json(document)
