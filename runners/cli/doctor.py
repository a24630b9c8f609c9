"""``sluice doctor``: checks this machine and a workspace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from pipeline.config.load import load_config
from runners.cli.options import Result, json_result, workspace_option
from runners.cli.rich_console import make_console, make_table, plain, say
from runners.doctor import Check, run_checks
from runners.operations.pipeline_request import workspace_of
from sluice.errors import ExitCode
from sluice.project import current_project
from sluice.workspace import locate

_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


@click.command()
@click.argument("name", required=False)
@workspace_option
@json_result
def doctor(name: str | None) -> Result:
    """Check this machine: packages, disks, memory, devices, credentials.

    With NAME, check the workspace of that pipeline, else those of the project. The exit
    code is 2 if there is a problem, and 0 if there are only warnings. The network is
    not used.
    """
    if name is None:
        workspace = locate(current_project(Path.cwd()), "")
    else:
        workspace = workspace_of(load_config(name))
    console = make_console(to_stderr=True)
    with console.status("checking; importing TensorFlow takes up to a minute"):
        checks = list(run_checks(workspace.root))
    ok = not any(check.state == "problem" for check in checks)
    facts = {"ok": ok, "checks": [asdict(check) for check in checks]}
    code = ExitCode.DONE if ok else ExitCode.USAGE
    return Result(facts, partial(_print_checks, checks), code)


def _print_checks(checks: Sequence[Check]) -> None:
    table = make_table("state", "check", "found", folded=("found",), show_header=False)
    for check in checks:
        found = plain(check.found)
        if check.hint:
            found.append("\n").append_text(plain(f"try: {check.hint}", "dim"))
        state = plain(check.state, _STYLES[check.state])
        table.add_row(state, check.check.replace("_", " "), found)
    console = make_console()
    console.print(table)
    counts = Counter(check.state for check in checks)
    say(console)
    say(console, ", ".join(f"{counts[state]} {state}" for state in counts), "bold")
