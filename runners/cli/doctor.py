"""``sluice doctor``: checks this machine and a workspace."""

from __future__ import annotations

from dataclasses import asdict

import click
from rich.table import Table

from runners.cli.echo import echo_json
from runners.cli.options import json_option, workspace_option
from runners.cli.rich_console import make_console, plain
from runners.doctor.check import Check
from runners.operations import doctor as operation
from sluice.errors import ExitCode

_SCHEMA_VERSION = 1
_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


@click.command()
@click.argument("name", required=False)
@workspace_option
@json_option
def doctor(name: str | None, workspace_dir: str | None, as_json: bool) -> int:
    """Check this machine: packages, disks, memory, devices, credentials.

    With NAME, check the workspace of that pipeline, else those of the project. The exit
    code is 2 if there is a problem, and 0 if there are only warnings. The network is
    not used.
    """
    request = operation.DoctorRequest(name=name, workspace_dir=workspace_dir)
    found = operation.doctor(request)
    console = make_console(to_stderr=as_json)
    checks = []
    with console.status("checking; importing TensorFlow takes up to a minute"):
        for check in found:
            checks.append(check)
            console.print(_make_row(check))
    problems = sum(check.state == "problem" for check in checks)
    warnings = sum(check.state == "warning" for check in checks)
    style = _STYLES["problem" if problems else "warning" if warnings else "ok"]
    console.print()
    counts = (_format_count(problems, "problem"), _format_count(warnings, "warning"))
    console.print(plain(", ".join(counts), style))
    if as_json:
        rows = [asdict(check) for check in checks]
        report = {"schema_version": _SCHEMA_VERSION, "ok": not problems}
        echo_json({**report, "checks": rows})
    return int(ExitCode.USAGE if problems else ExitCode.DONE)


def _format_count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _make_row(check: Check) -> Table:
    """Returns a table of one row; rows are printed as soon as they are known."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=7, no_wrap=True)
    table.add_column(width=14, no_wrap=True)
    table.add_column(overflow="fold")
    found = plain(check.found)
    if check.hint:
        found.append("\n").append_text(plain(f"try: {check.hint}", "dim"))
    state = plain(check.state, _STYLES[check.state])
    table.add_row(state, plain(check.check.replace("_", " ")), found)
    return table
