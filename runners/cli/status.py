"""``sluice status [NAME]``: how a run went or goes, from its record alone."""

from __future__ import annotations

import click
from rich.table import Table

from runners.cli.console import make_console, plain
from runners.cli.options import json_option, workspace_option
from runners.cli.render_run import print_run
from runners.cli.say import say, say_json, say_warning
from runners.local.complete_runs import complete_killed_runs
from runners.operations.find_run import all_workspaces, find_run, readable_runs
from sluice.record.states import RUN_STYLES


@click.command()
@click.argument("name", required=False)
@click.option("run_id", "--run", metavar="ID", help="Which run; default: the last.")
@workspace_option
@json_option
def status(
    name: str | None, run_id: str | None, workspace_dir: str | None, as_json: bool
) -> None:
    """Show a run of NAME; without NAME, the last run of every pipeline."""
    if name is None:
        _show_all(workspace_dir, as_json)
        return
    record = find_run(name, workspace_dir, run_id=run_id, warn=say_warning).record
    if as_json:
        say_json(record.to_dict())
        return
    print_run(make_console(), record)


def _show_all(workspace_dir: str | None, as_json: bool) -> None:
    records = []
    for workspace in all_workspaces(workspace_dir):
        complete_killed_runs(workspace)
        if record := next(readable_runs(workspace, say_warning), None):
            records.append(record)
    if as_json:
        say_json([record.to_dict() for record in records])
        return
    if not records:
        say("nothing has run yet; try: sluice run NAME")
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("pipeline", "last run", "status", "served", "why"):
        table.add_column(column, no_wrap=column != "why")
    for record in records:
        versions = [str(push.version) for push in record.pushes if push.version]
        table.add_row(
            plain(record.pipeline),
            plain(record.run_id),
            plain(record.status, RUN_STYLES[record.status]),
            plain(", ".join(versions)),
            plain(record.error.message.splitlines()[0] if record.error else ""),
        )
    make_console().print(table)
