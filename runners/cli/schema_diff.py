"""``sluice schema diff NAME``: where data differs from the reviewed schema."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from runners.cli.echo import echo_json, echo_warning
from runners.cli.options import config_options, json_option, workspace_option
from runners.cli.rich_console import make_console, plain, print_line
from runners.operations.schema import diff as operation
from runners.operations.schema.source import SchemaRequest
from sluice.errors import ExitCode

_SOURCE_OPTIONS = (
    click.option(
        "run_id", "--run", metavar="ID", help="Use the statistics of this run."
    ),
    click.option("--data", is_flag=True, help="Read all records of the files instead."),
    workspace_option,
)


def source_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--run``, ``--data`` and ``--workspace``."""
    for option in reversed(_SOURCE_OPTIONS):
        function = option(function)
    return function


@click.command(short_help="Show where data differs from the reviewed schema.")
@config_options
@source_options
@click.option(
    "--check", is_flag=True, help="Exit with code 3 if there is a difference."
)
@json_option
def diff(check: bool, as_json: bool, **asked: Any) -> int:
    """Show where data differs from the reviewed schema of the pipeline NAME.

    The data is described by the statistics of the last run (StatisticsGen), or with
    --data by all records of the config's files as they are now. `sluice schema accept`
    takes the name in brackets at the end of a line.
    """
    compared = operation.diff(SchemaRequest(**asked), echo_warning)
    print_diff(compared, as_json)
    if as_json:
        echo_json(compared.to_dict())
    return int(ExitCode.DATA if check and compared.diff.changes else ExitCode.DONE)


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def print_diff(compared: operation.Compared, as_json: bool) -> None:
    """Prints the differences and their ids."""
    console = make_console(to_stderr=as_json)
    observed = compared.source.observed
    splits = ", ".join(observed.splits)
    for fact in (
        f"schema  {_short(compared.path)}",
        f"data    {compared.source.text}",
        f"        {observed.records:,} records, splits: {splits}",
    ):
        print_line(console, fact, "dim")
    for change in compared.diff.changes:
        line = plain(f"{change.feature}: {change.text}")
        line.append_text(plain(f"  [{change.id}]", "dim"))
        console.print(line, soft_wrap=True)
        if change.refusal:
            console.print(plain(f"  cannot be accepted: {change.refusal}", "dim"))
    for note in compared.diff.notes:
        print_line(console, f"note: {note}", "dim")
    if not compared.diff.changes:
        console.print("no difference")
    possible = [change.id for change in compared.diff.changes if not change.refusal]
    if possible:
        wanted = possible[0] if len(possible) == 1 else "CHANGE..."
        command = compared.request.schema_command("accept", wanted)
        console.print()
        print_line(console, f"if the data is right: {command}", "dim")
