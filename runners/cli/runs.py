"""``sluice runs NAME``: a table of runs with metrics and parameters that differ."""

from __future__ import annotations

import json
from functools import partial
from itertools import islice
from typing import Any

import click

from reports.formats import number, seconds, tags_text
from reports.read_run import RunData
from reports.run_table import RunTable, make_run_table
from runners.cli.echo import echo, echo_warning
from runners.cli.options import Result, config_options, verb, wants_json
from runners.cli.rich_console import make_console, make_table, plain, say
from runners.operations.find_run import readable_runs, updated_workspace
from sluice.record.run_record import RunRecord
from sluice.record.states import RUN_STYLES

_SHOWN_RUNS = 30
_SHOWN_METRICS, _SHOWN_PARAMETERS = 4, 6
# What counts examples is no metric that one compares.
_COUNTS = ("example_count", "weighted_example_count")


@verb()
@config_options
@click.option(
    "--sort",
    metavar="NAME",
    help="Sort by a metric (best first), a parameter, started, duration, version or "
    "examples.",
)
@click.option("--tag", metavar="KEY[=VALUE]", help="Only runs with this tag.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help=f"Number of runs; default: {_SHOWN_RUNS}, or all with --json.",
)
def runs(
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    sort: str | None,
    tag: str | None,
    limit: int | None,
) -> Result:
    """List the runs of the pipeline NAME, newest first.

    Metrics are those of all examples. Of the parameters, those are listed that differ
    between the runs of the table. With --profile, runs of its service that schedules
    or other machines have submitted are added to the workspace.
    """
    if not wants_json():
        limit = limit or _SHOWN_RUNS
    workspace = updated_workspace(name, profile, overrides)
    records = readable_runs(workspace)
    if tag is not None:
        records = (record for record in records if _has_tag(record, tag))
    if sort is None:
        # Only those that are listed are read.
        records = islice(records, limit)
    found = [RunData(workspace.run_dir(item.run_id), item) for item in records]
    table = make_run_table(found, sort=sort, limit=limit)
    for notice in (notice for run in found for notice in run.notices):
        echo_warning(notice)
    show = partial(_print_table, table, limit)
    if not table.rows:
        wanted = f" with the tag {tag}" if tag else ""
        show = partial(echo, f"{name} has no run{wanted}")
    return Result([row.to_dict() for row in table.rows], show)


def _has_tag(record: RunRecord, tag: str) -> bool:
    key, separator, value = tag.partition("=")
    return key in record.tags and (not separator or record.tags[key] == value)


def _print_table(table: RunTable, limit: int | None) -> None:
    metrics = [name for name in table.metrics if name not in _COUNTS]
    parameters = table.parameters
    more = len(metrics[_SHOWN_METRICS:]) + len(parameters[_SHOWN_PARAMETERS:])
    metrics, parameters = metrics[:_SHOWN_METRICS], parameters[:_SHOWN_PARAMETERS]
    rows: list[dict[str, Any]] = [
        {
            "run": row.facts["run_id"],
            "verdict": plain(row.facts["outcome"], RUN_STYLES[row.facts["status"]]),
            "version": _text(row.facts["version"]),
            "time": seconds(row.facts["duration_s"], ""),
            "examples": f"{sum(row.examples.values()):,}" if row.examples else "",
            **{name: number(row.metrics.get(name)) for name in metrics},
            **{_short(x): _text(row.parameters.get(x)) for x in parameters},
            "tags": tags_text(row.facts["tags"]),
            "started": row.facts["started_at"][:16].replace("T", " "),
        }
        for row in table.rows
    ]
    titles = [title for title in rows[0] if any(row[title] for row in rows)]
    values = list(map(_short, parameters))
    numbers = {"version", "time", "examples", *metrics, *values}
    out = make_table(*titles, right=numbers, folded=values)
    for cells in rows:
        out.add_row(*(cells[title] for title in titles))
    console = make_console()
    console.print(out)
    if more:
        say(console, f"and {more} more metrics and parameters: see --json", "dim")
    if len(rows) == limit:
        say(console, f"at most {limit} runs are listed: see --limit", "dim")


def _short(path: str) -> str:
    return ".".join(path.split(".")[-2:])


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
