"""``sluice gc NAME``: deletes artifacts that no kept run and no served model needs."""

from __future__ import annotations

from functools import partial

import click
from rich.filesize import decimal

from pipeline.config.load import load_config
from runners.cli.options import Result, typed_command, verb
from runners.cli.rich_console import make_console, say
from runners.operations.collect_garbage import collect_garbage
from runners.operations.find_run import serving_dir_of, workspace_of
from runners.retention.find_garbage import Garbage
from sluice.errors import bounded

_KINDS = {
    "artifacts": "outputs of nodes",
    "runs": "logs of runs",
    "inputs": "copies of input files",
    "checkpoints": "checkpoints of trainings",
    "versions": "pushed versions",
}


@verb()
@click.argument("name")
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Number of newest runs to keep.",
)
@click.option(
    "--keep-versions",
    type=click.IntRange(min=1),
    help="Also delete pushed versions but so many newest ones and the baseline's.",
)
@click.option(
    "--dry-run", is_flag=True, help="List what would be deleted; delete nothing."
)
def command(name: str, keep: int, keep_versions: int | None, dry_run: bool) -> Result:
    """Delete artifacts of NAME that no kept run and no served model needs.

    Kept are the newest runs, the runs that the served versions came from, and the last
    complete run, each with all of its inputs. The history in 'sluice runs' and
    'sluice lineage' stays.
    """
    config = load_config(name)
    workspace = workspace_of(config)
    garbage = collect_garbage(
        workspace,
        [serving_dir_of(config), workspace.serving],
        keep=keep,
        keep_versions=keep_versions,
        dry_run=dry_run,
        command=typed_command(),
    )
    facts = {
        "pipeline": config.name,
        "dry_run": dry_run,
        "deleted": {
            kind: [item.name for item in garbage.items.get(kind, ())] for kind in _KINDS
        },
        "freed_bytes": garbage.freed_bytes,
        "kept_runs": list(garbage.kept_runs),
    }
    return Result(facts, partial(_print_garbage, garbage, dry_run))


def _print_garbage(garbage: Garbage, dry_run: bool) -> None:
    """Prints each kind with its largest items; ``--json`` has all, empty ones too."""
    console, would = make_console(), "would be " if dry_run else ""
    for kind, items in garbage.items.items():
        largest = sorted(items, key=lambda item: -item.size_bytes)
        sized = [item for item in largest if item.size_bytes]
        if not sized:
            continue
        size = decimal(sum(item.size_bytes for item in items))
        say(console, f"{_KINDS[kind]} {would}deleted: {len(items)}, {size}")
        for line in bounded([f"{x.name}  {decimal(x.size_bytes)}" for x in sized]):
            say(console, f"  {line}", "dim")
    say(console, f"{would}freed: {decimal(garbage.freed_bytes)}", "bold")
    kept = ", ".join(bounded(garbage.kept_runs[::-1])) or "none"
    say(console, f"kept runs: {kept}")
