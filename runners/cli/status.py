"""``sluice status [NAME]``: how a run went or goes, from its record alone."""

from __future__ import annotations

from datetime import datetime, timezone

import click
from rich.console import Console
from rich.table import Table

from runners.cli.console import make_console, plain, plain_lines
from runners.cli.options import json_option, workspace_option
from runners.cli.run_view import LABELS, describe_progress, seconds
from runners.cli.runs import STYLES
from runners.cli.say import say, say_json, say_warning
from runners.cli.verdict_table import print_verdict
from runners.local.complete_runs import complete_killed_runs
from runners.operations.find_run import all_workspaces, find_run, readable_runs
from sluice.record.run_record import NodeRecord, RunRecord


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
    _show(record, make_console())


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
            plain(record.status, STYLES.get(record.status, "red")),
            plain(", ".join(versions)),
            plain(record.error.message.splitlines()[0] if record.error else ""),
        )
    make_console().print(table)


def _show(record: RunRecord, console: Console) -> None:
    style = STYLES.get(record.status, "red")
    console.print(plain(f"{record.pipeline}  run {record.run_id}", "bold"))
    lines = [f"status    {record.status}", f"started   {record.started_at}"]
    lines += [f"resumed   {at}" for at in record.resumed_at]
    if record.ended_at:
        lines.append(f"ended     {record.ended_at}")
    lines.append(f"command   {record.command}")
    for number, line in enumerate(lines):
        console.print(plain(line, style if number == 0 else ""), soft_wrap=True)
    console.print()
    console.print(node_table(record.nodes))
    for gate in record.gates:
        console.print()
        print_verdict(console, gate)
    console.print()
    for push in record.pushes:
        version = f" as version {push.version}" if push.version else ""
        text = f"push      {push.state}{version}: {push.uri or push.destination}"
        console.print(plain(text), soft_wrap=True)
    for note in record.notes:
        console.print(plain(f"note      {note}", "yellow"), soft_wrap=True)
    if record.error:
        lines = record.error.message.split("\n")
        console.print(plain_lines(lines, "red"), soft_wrap=True)
        if record.error.log:
            console.print(plain(f"  log:      {record.error.log}"), soft_wrap=True)
    if record.resume_command:
        console.print(plain(f"go on:   {record.resume_command}"), soft_wrap=True)


def node_table(nodes: list[NodeRecord]) -> Table:
    """Returns one row per node: state, times, memory and why."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("node", "state", "time", "peak memory", "tries", "why"):
        table.add_column(column, no_wrap=column != "why")
    for node in nodes:
        label, style = LABELS[node.state]
        memory = node.peak_memory_bytes
        table.add_row(
            plain(node.id),
            plain(label, style),
            plain(seconds(_elapsed_s(node))),
            plain(f"{memory / 1e9:.1f} GB" if memory else ""),
            plain(str(node.attempts) if node.attempts > 1 else ""),
            plain(node.reason or describe_progress(node.progress or {}) or ""),
        )
    return table


def _elapsed_s(node: NodeRecord) -> float | None:
    if node.state != "running" or node.started_at is None:
        return node.duration_s
    started = datetime.fromisoformat(node.started_at)
    return (datetime.now(timezone.utc) - started).total_seconds()
