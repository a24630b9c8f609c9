"""``sluice runs NAME``: a table of runs with metrics and parameters that differ."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import click
from rich.cells import cell_len

from reports.run_table import RunRow, RunTable
from runners.cli.echo import echo, echo_json, echo_output, echo_warning
from runners.cli.options import config_options, json_option, workspace_option
from runners.cli.render_run import format_seconds, format_tags
from runners.cli.rich_console import make_console, make_table, plain, print_line
from runners.operations import status as operation
from runners.operations.pipeline_request import next_command
from sluice.errors import bounded
from sluice.printable import printable
from sluice.record.states import RUN_STYLES
from sluice.record.verdict import cell

_SHOWN_RUNS = 30
_MAX_CELL = 30
_MAX_PARAMETERS = 20
# What counts examples is no metric that one compares.
_COUNTS = ("example_count", "weighted_example_count")


@click.command()
@config_options
@click.option(
    "--sort",
    metavar="NAME",
    help="Sort by a metric (best first), a parameter, started, duration, version or "
    "examples.",
)
@click.option("--tag", metavar="KEY[=VALUE]", help="Only runs with this tag.")
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help=f"Number of runs; default: {_SHOWN_RUNS}, or all with --csv and --json.",
)
@click.option("--csv", "as_csv", is_flag=True, help="CSV on stdout.")
@workspace_option
@json_option
def runs(as_csv: bool, as_json: bool, **asked: Any) -> None:
    """List the runs of the pipeline NAME, newest first.

    Metrics are those of all examples. Of the parameters, those are listed that differ
    between the runs of the table. With --profile, runs of its service that schedules
    or other machines have submitted are added to the workspace.
    """
    if not (as_csv or as_json):
        asked["limit"] = asked["limit"] or _SHOWN_RUNS
    table = operation.list_runs(operation.RunsRequest(**asked), echo_warning)
    if as_json:
        echo_json([row.to_dict() for row in table.rows])
    elif as_csv:
        echo_output(_as_csv(table))
    elif table.rows:
        _print_table(table)
    elif asked["tag"]:
        echo(f"no run of {asked['name']} has the tag {asked['tag']}")
    else:
        command = next_command(
            "run", asked["name"], workspace_dir=asked["workspace_dir"]
        )
        echo(f"{asked['name']} has not run yet; try: {command}")


def _as_csv(table: RunTable) -> str:
    splits = list(dict.fromkeys(name for row in table.rows for name in row.examples))
    own = ("run_id", "started_at", "duration_s", "status", "verdict", "version")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [
            *own,
            "tags",
            *(f"examples.{name}" for name in splits),
            *(f"metrics.{name}" for name in table.metrics),
            *(f"parameters.{name}" for name in table.parameters),
        ]
    )
    for row in table.rows:
        writer.writerow(
            [
                *(getattr(row, name) for name in own),
                format_tags(row.tags),
                *(row.examples.get(name) for name in splits),
                *(row.metrics.get(name) for name in table.metrics),
                *(_text(row.parameters.get(name)) for name in table.parameters),
            ]
        )
    return text.getvalue()


@dataclass(frozen=True)
class _Column:
    """A column.

    Where there is no room for all columns, those of a lower ``rank`` are kept.
    """

    name: str
    texts: list[str]
    rank: int
    is_number: bool = True

    @property
    def width(self) -> int:
        return max(cell_len(printable(text)) for text in (self.name, *self.texts)) + 2


def _print_table(table: RunTable) -> None:
    console = make_console()
    columns = [column for column in _columns(table) if any(column.texts)]
    shown = columns
    if console.is_terminal:
        shown = _fitting(columns, console.width)
    else:
        console.width = sum(column.width for column in columns)
    out = make_table()
    for column in shown:
        justify: Literal["right", "left"] = "right" if column.is_number else "left"
        out.add_column(plain(column.name), justify=justify, no_wrap=True)
    for index, row in enumerate(table.rows):
        styles = [RUN_STYLES[row.status] if c.name == "verdict" else "" for c in shown]
        texts = (column.texts[index] for column in shown)
        out.add_row(*map(plain, texts, styles))
    console.print(out)
    hidden = [column.name for column in columns if column not in shown]
    hidden += table.parameters[_MAX_PARAMETERS:]
    if hidden:
        names = ", ".join(bounded(hidden, _MAX_PARAMETERS))
        print_line(console, f"not shown for lack of width (see --csv): {names}", "dim")
    if table.left_out:
        total = table.left_out + len(table.rows)
        text = f"and {table.left_out} more runs: --limit {total}"
        console.print(plain(text, "dim"))


def _columns(table: RunTable) -> Iterable[_Column]:
    """Yields the columns from left to right."""
    rows = table.rows

    def texts(value: Callable[[RunRow], Any]) -> list[Any]:
        return [value(row) for row in rows]

    yield _Column("run", texts(lambda row: row.run_id), 0, is_number=False)
    yield _Column("verdict", texts(lambda row: row.verdict), 0, is_number=False)
    yield _Column("version", texts(lambda row: _text(row.version)), 1)
    yield _Column("time", texts(lambda row: format_seconds(row.duration_s)), 4)
    yield _Column("examples", texts(_examples), 4)
    for name in table.metrics:
        if name not in _COUNTS:
            yield _Column(name, _numbers([row.metrics.get(name) for row in rows]), 2)
    for name in table.parameters[:_MAX_PARAMETERS]:
        values = [_cut(_text(row.parameters.get(name))) for row in rows]
        yield _Column(_short(name, table.parameters), values, 3)
    tags = texts(lambda row: format_tags(row.tags))
    yield _Column("tags", tags, 3, is_number=False)
    dates = texts(lambda row: row.started_at[:16].replace("T", " "))
    yield _Column("started", dates, 5, is_number=False)


def _fitting(columns: list[_Column], width: int) -> list[_Column]:
    """Returns the columns that fit into a width, those of the lowest rank first."""
    kept: list[_Column] = []
    for column in sorted(columns, key=lambda column: column.rank):
        if column.width <= width or not kept:
            kept.append(column)
            width -= column.width
    return [column for column in columns if column in kept]


def _examples(row: RunRow) -> str:
    return f"{sum(row.examples.values()):,}" if row.examples else ""


def _numbers(values: list[float | None]) -> list[str]:
    """Returns the values of a metric; counts have no decimals."""
    known = [value for value in values if value is not None]
    if all(map(float.is_integer, known)) and any(abs(value) > 1 for value in known):
        return ["" if value is None else f"{value:,.0f}" for value in values]
    return ["" if value is None else cell(value) for value in values]


def _short(name: str, names: Sequence[str]) -> str:
    """Returns the last two parts of a parameter's path, where no other ends alike."""
    ends = [".".join(other.split(".")[-2:]) for other in names]
    end = ".".join(name.split(".")[-2:])
    return end if ends.count(end) == 1 else name


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CELL else text[: _MAX_CELL - 3] + "..."
