"""``sluice diff NAME [BEFORE [AFTER]]``: what differs between two runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from reports.compare import Comparison
from reports.diff_page import diff_markdown, render_diff
from reports.diff_tables import diff_tables
from reports.summarize_changes import summarize_changes
from reports.tables import Mark, Table
from runners.cli.echo import echo, echo_json, echo_output, echo_warning
from runners.cli.options import json_option, workspace_option
from runners.cli.rich_console import make_console, make_table, plain, print_line
from runners.operations import diff as operation
from sluice.storage.output_path import resolve_output_path, write_output

_MAX_ROWS = 40
_STYLES = {"good": "green", "bad": "red", "warn": "yellow", "quiet": "dim"}


@click.command()
@click.argument("name")
@click.argument("before", required=False)
@click.argument("after", required=False)
@click.option("--html", "form", flag_value="html", help="A page, offline in one file.")
@click.option("--markdown", "form", flag_value="markdown", help="For a pull request.")
@click.option("--output", "-o", metavar="FILE", help="Write to FILE.")
@workspace_option
@json_option
def diff(form: str | None, output: str | None, as_json: bool, **asked: Any) -> None:
    """Show what differs between two runs of the pipeline NAME.

    BEFORE and AFTER are the ids of runs or their beginnings, `latest`, `last-pushed`,
    or folders of runs. By default the last run is compared with the last one before it
    that pushed a model.
    """
    file = resolve_output_path(output, Path.cwd(), "--output") if output else None
    found = operation.diff(operation.DiffRequest(**asked), echo_warning)
    if as_json:
        echo_json(found.to_dict())
    elif form is None and file is None:
        _print_comparison(make_console(), found)
    else:
        is_page = form == "html" or (form is None and file and file.suffix == ".html")
        text = render_diff(found) if is_page else diff_markdown(found)
        if file is None:
            echo_output(text)
        else:
            write_output(file, text, "comparison")
            echo(f"wrote {output}")


def _print_comparison(console: Console, found: Comparison) -> None:
    for table in diff_tables(found, all_metrics=False):
        console.print(plain(table.caption, "bold"))
        _print_table(console, table)
        console.print()
    for line in summarize_changes(found) or ["nothing differs that affects the model"]:
        print_line(console, line)


def _print_table(console: Console, table: Table) -> None:
    out = make_table()
    for column in table.columns:
        label = f"{column.label} ({column.unit})" if column.unit else column.label
        out.add_column(
            plain(label),
            justify="right" if column.format else "left",
            overflow="fold",
            no_wrap=column.format is not None,
        )
    for row in table.rows[:_MAX_ROWS]:
        cells = zip(table.columns, row, strict=True)
        out.add_row(
            *(
                plain(
                    column.text(value),
                    _STYLES.get(value.tone, "") if isinstance(value, Mark) else "",
                )
                for column, value in cells
            )
        )
    console.print(out)
    if len(table.rows) > _MAX_ROWS:
        text = f"and {len(table.rows) - _MAX_ROWS} more: see --html or --json"
        console.print(plain(text, "dim"))
