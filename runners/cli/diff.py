"""``sluice diff NAME [BEFORE [AFTER]]``: what differs between two runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
from rich.console import Console

from reports.compare import Comparison, summarize_changes
from reports.diff_page import diff_tables, render_diff
from reports.tables import Table
from runners.cli.echo import echo, echo_warning
from runners.cli.options import Result, verb
from runners.cli.rich_console import make_console, make_table, plain, say
from runners.operations.compare_runs import compare_runs
from sluice.storage.output_path import resolve_output_path, write_output

_MAX_ROWS = 40
_STYLES = {"good": "green", "bad": "red", "warn": "yellow", "quiet": "dim"}


@verb()
@click.argument("name")
@click.argument("before", required=False)
@click.argument("after", required=False)
@click.option("--output", "-o", metavar="FILE", help="Write a page to FILE.")
def command(
    name: str,
    before: str | None,
    after: str | None,
    output: str | None,
) -> Result:
    """Show what differs between two runs of the pipeline NAME.

    BEFORE and AFTER are the ids of runs or their beginnings, 'latest', 'last-pushed',
    or folders of runs. By default the last run is compared with the last one before it
    that pushed a model.
    """
    file = resolve_output_path(output, Path.cwd(), "--output") if output else None
    comparison = compare_runs(name, before, after)
    for notice in [notice for run in comparison.runs for notice in run.notices]:
        echo_warning(notice)
    show = partial(print_comparison, make_console(), comparison)
    if file:
        write_output(file, render_diff(comparison), "comparison")
        show = partial(echo, f"wrote {output}")
    return Result(comparison.to_dict(), show)


def print_comparison(console: Console, found: Comparison) -> None:
    """Prints a summary and tables of what differs."""
    for line in summarize_changes(found) or ["nothing differs that affects the model"]:
        say(console, line)
    for table in diff_tables(found, all_metrics=False):
        say(console)
        say(console, table.caption, "bold")
        _print_table(console, table)


def _print_table(console: Console, table: Table) -> None:
    titles = {column.label: column for column in table.columns}
    numbers = [title for title, column in titles.items() if column.format]
    out = make_table(*titles, right=numbers, folded=titles.keys() - numbers)
    for row in table.rows[:_MAX_ROWS]:
        cells = []
        for column, value in zip(table.columns, row, strict=True):
            style = _STYLES.get(getattr(value, "tone", ""), "")
            cells.append(plain(column.text(value), style))
        out.add_row(*cells)
    console.print(out)
    if len(table.rows) > _MAX_ROWS:
        text = f"and {len(table.rows) - _MAX_ROWS} more: see --output or --json"
        say(console, text, "dim")
