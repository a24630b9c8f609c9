"""``sluice gc NAME``: deletes artifacts that no kept run and no served model needs."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.filesize import decimal

from runners.cli.echo import echo_json
from runners.cli.options import json_option, typed_command, workspace_option
from runners.cli.rich_console import make_console, make_table, plain, print_line
from runners.operations import gc as operation
from runners.retention.find_garbage import Garbage
from sluice.errors import bounded

_KINDS = {
    "artifacts": "outputs of nodes",
    "runs": "logs of runs",
    "inputs": "copies of input files",
    "checkpoints": "checkpoints of trainings",
    "leftovers": "temporary files of nodes",
}


@click.command()
@click.argument("name")
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Number of newest runs to keep.",
)
@click.option(
    "--dry-run", is_flag=True, help="List what would be deleted; delete nothing."
)
@workspace_option
@json_option
def gc(as_json: bool, **asked: Any) -> None:
    """Delete artifacts of NAME that no kept run and no served model needs.

    Kept are the newest runs, the runs that the served versions came from, and the last
    complete run, each with all of its inputs. The history in `sluice runs` and
    `sluice lineage` stays.
    """
    collected = operation.gc(operation.GcRequest(**asked, command=typed_command()))
    _print_garbage(
        collected.garbage, collected.dry_run, make_console(to_stderr=as_json)
    )
    if as_json:
        echo_json(collected.to_dict())


def _print_garbage(garbage: Garbage, dry_run: bool, console: Console) -> None:
    table = make_table("would delete" if dry_run else "deleted")
    for column in ("count", "size"):
        table.add_column(column, justify="right", no_wrap=True)
    for kind, items in garbage.items.items():
        if size_bytes := sum(item.size_bytes for item in items):
            table.add_row(_KINDS[kind], str(len(items)), decimal(size_bytes))
    if table.row_count:
        console.print(table)
    if dry_run:
        _print_items(garbage, console)
    if garbage.close:
        verb = "would be closed" if dry_run else "closed"
        ids = ", ".join(bounded([str(item) for item in garbage.close]))
        console.print(plain(f"executions of killed runs {verb} as failed: {ids}"))
    verb = "would free" if dry_run else "freed"
    kept = ", ".join(bounded(garbage.kept_runs[::-1])) or "none"
    console.print(plain(f"{verb} {decimal(garbage.freed_bytes)}", "bold"))
    print_line(console, f"kept runs: {kept}")


def _print_items(garbage: Garbage, console: Console) -> None:
    """Prints the largest items of each kind; ``--json`` has all, empty ones too."""
    for kind, items in garbage.items.items():
        largest = sorted(items, key=lambda item: -item.size_bytes)
        lines = [
            f"{item.name}  {decimal(item.size_bytes)}"
            for item in largest
            if item.size_bytes
        ]
        if lines:
            console.print(plain(f"{_KINDS[kind]}:", "dim"))
        for line in bounded(lines):
            print_line(console, f"  {line}")
