"""``sluice runs NAME``: a table of runs with metrics and parameters that differ."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any

import click

from reports.formats import number, seconds, tags_text
from reports.read_run import RunData
from reports.run_table import FACTS, RunRow, RunTable, make_run_table
from runners.cli.echo import echo, echo_warning
from runners.cli.options import Result, config_options, verb, wants_json
from runners.cli.rich_console import make_console, make_table, plain, say
from runners.operations.find_run import readable_runs, updated_workspace
from sluice.errors import bounded
from sluice.record.run_record import RunRecord
from sluice.record.states import RUN_STYLES

_SHOWN_RUNS = 30
_SHOWN_METRICS = 4
# Width of a column that is wrapped, unless columns were chosen.
_WRAPPED_WIDTH = 30
_ONE_LINE = set(FACTS) - {"tags"}


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
    "--columns",
    metavar="NAME,...",
    help="Columns: metrics, parameters such as train.epochs or train.optimizer, "
    f"{', '.join(FACTS[1:])}.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help=f"Number of runs; default: {_SHOWN_RUNS}, or all with --json.",
)
def command(
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    sort: str | None,
    tag: str | None,
    columns: str | None,
    limit: int | None,
) -> Result:
    """List the runs of the pipeline NAME, newest first.

    Metrics are those of all examples, parameters those that differ between the runs
    of the table, as many as fit on a line; --columns chooses others. With --profile,
    runs of its service that schedules or other machines have submitted are added to
    the workspace.
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
    chosen = [x.strip() for x in columns.split(",")] if columns else []
    found = [RunData(workspace.run_dir(item.run_id), item) for item in records]
    table = make_run_table(found, sort=sort, limit=limit, columns=chosen)
    for notice in (notice for run in found for notice in run.notices):
        echo_warning(notice)
    show = partial(_print_table, table, chosen, limit)
    if not table.rows:
        wanted = f" with the tag {tag}" if tag else ""
        show = partial(echo, f"{name} has no run{wanted}")
    return Result([row.to_dict() for row in table.rows], show)


def _has_tag(record: RunRecord, tag: str) -> bool:
    key, separator, value = tag.partition("=")
    return key in record.tags and (not separator or record.tags[key] == value)


def _print_table(table: RunTable, columns: Sequence[str], limit: int | None) -> None:
    console = make_console()
    metrics = table.compared_metrics
    names: Sequence[str] = ("run", *columns)
    if not columns:
        names = "run", "verdict", "version", *metrics[:_SHOWN_METRICS], "tags"
        names = *names, *table.parameters, "duration", "examples"
    cells = {name: [_cell(row, name, table) for row in table.rows] for name in names}
    folded = set(cells).difference(_ONE_LINE, table.metrics)
    shown, left = [], console.width
    for name, texts in cells.items():
        longest = max(map(len, texts))
        if name in folded:
            longest = min(longest, _WRAPPED_WIDTH)
        width = max(len(name), longest)
        if columns or (any(texts) and width + 2 <= left):
            shown.append((name, width))
            left -= width + 2
    others = [x for x in (*metrics, *table.parameters) if x not in dict(shown)]
    numbers = {"version", "duration", "examples", *table.metrics}
    out = make_table(*dict(shown), right=numbers, folded=folded)
    for column, (_, width) in zip(out.columns, shown, strict=True):
        column.max_width = None if columns else width
    for row in zip(*(cells[name] for name, _ in shown), strict=True):
        out.add_row(*row)
    console.print(out)
    if others and not columns:
        say(console, f"not shown: {', '.join(bounded(others))}; see --columns", "dim")
    if len(table.rows) == limit:
        say(console, f"at most {limit} runs are listed: see --limit", "dim")


def _cell(row: RunRow, name: str, table: RunTable) -> Any:
    facts = row.facts
    if name == "verdict":
        return plain(facts["outcome"], RUN_STYLES[facts["status"]])
    texts = {
        "run": facts["run_id"],
        "version": str(facts["version"] or ""),
        "duration": seconds(facts["duration_s"], ""),
        "examples": f"{row.all_examples:,}" if row.all_examples else "",
        "tags": tags_text(facts["tags"]),
        "started": facts["started_at"][:16].replace("T", " "),
    }
    if name in table.metrics:
        texts.setdefault(name, number(row.metrics.get(name)))
    return plain(texts.get(name) or row.parameter(name))
