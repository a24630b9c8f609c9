"""``sluice schema infer|show|diff|accept``: the reviewed schema and the data."""

from __future__ import annotations

from typing import Any

import click

from runners.cli.echo import echo, echo_json
from runners.cli.options import config_options, json_option
from runners.cli.rich_console import make_console, make_table, plain, print_line
from runners.cli.schema_accept import accept
from runners.cli.schema_diff import diff
from runners.operations.pipeline_request import PipelineRequest
from runners.operations.schema import infer as infer_operation
from runners.operations.schema import show as show_operation


@click.group()
def schema() -> None:
    """The reviewed schema of a pipeline, compared with data."""


@schema.command(short_help="Show the reviewed schema as a table.")
@config_options
@json_option
def show(as_json: bool, **asked: Any) -> None:
    """Show the reviewed schema of the pipeline NAME as a table."""
    shown = show_operation.show(PipelineRequest(**asked))
    table = make_table()
    cells = [row.to_dict() for row in shown.rows]
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
    print_line(console, str(shown.path), "dim")
    console.print()
    console.print(table)
    if as_json:
        echo_json(shown.to_dict())


schema.add_command(diff)
schema.add_command(accept)


@schema.command(short_help="Print a schema inferred from the current data.")
@config_options
@click.option(
    "--examples", metavar="PATTERN", help="Use these files instead of the config's."
)
@click.option(
    "-o", "--output", metavar="FILE", help="Write to FILE, which must not exist."
)
@json_option
def infer(as_json: bool, **asked: Any) -> None:
    """Print a schema inferred from all records of the pipeline NAME.

    The reviewed schema is not changed.
    """
    found = infer_operation.infer(infer_operation.InferRequest(**asked))
    if found.missing_label:
        echo(f"note: no record has the label {found.missing_label}", err=True)
    if found.output is not None:
        told = f"wrote {found.output}: {found.features:,} features of {found.counted}"
        print_line(make_console(to_stderr=as_json), told)
    elif not as_json:
        echo(found.counted, err=True)
        echo(*found.text.rstrip("\n").split("\n"))
    if as_json:
        echo_json(found.to_dict())
