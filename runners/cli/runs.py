"""``sluice runs NAME``: the history of a pipeline, newest first."""

from __future__ import annotations

import click
from rich.table import Table

from runners.cli.console import make_console, plain
from runners.cli.next_command import next_command
from runners.cli.options import json_option, workspace_option
from runners.cli.say import say, say_json
from runners.local.complete_runs import complete_killed_runs
from runners.operations.find_run import find_workspace
from sluice.record.run_record import RunRecord
from sluice.record.states import RUN_STYLES


@click.command()
@click.argument("name")
@workspace_option
@json_option
def runs(name: str, workspace_dir: str | None, as_json: bool) -> None:
    """List the runs of the pipeline NAME, newest first."""
    workspace = find_workspace(name, workspace_dir)
    complete_killed_runs(workspace)
    records = []
    for run_id in reversed(workspace.run_ids()):
        try:
            records.append(RunRecord.load(workspace.run_dir(run_id)))
        except (ValueError, KeyError, TypeError) as error:
            # One damaged record must not hide the others.
            say(f"warning: run {run_id} is unreadable: {error}", err=True)
    if as_json:
        say_json([record.to_dict() for record in records])
        return
    if not records:
        say(f"{name} has not run yet; try: {next_command('run', name)}")
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("run", "status", "exit", "nodes that ran", "push", "why"):
        table.add_column(column, no_wrap=column != "why")
    for record in records:
        ran = [node.id for node in record.nodes if node.state == "ran"]
        push = record.pushes[0] if record.pushes else None
        version = f" (version {push.version})" if push and push.version else ""
        why = record.error.message.splitlines()[0] if record.error else ""
        table.add_row(
            plain(record.run_id),
            plain(record.status, RUN_STYLES[record.status]),
            plain("" if record.exit_code is None else str(record.exit_code)),
            plain(f"{len(ran)} of {len(record.nodes)}"),
            plain(f"{push.state}{version}" if push else ""),
            plain(why),
        )
    make_console().print(table)
