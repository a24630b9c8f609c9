"""Options shared by several verbs, and the state of one call of the command line."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from sluice.errors import ExitCode

if TYPE_CHECKING:
    from runners.engine import Engine


def error_document(code: ExitCode, message: str) -> dict[str, Any]:
    """Returns the JSON form of an error; its keys are also in the record of a run."""
    return {
        "schema_version": 1,
        "status": "interrupted" if code == ExitCode.INTERRUPTED else "failed",
        "exit_code": int(code),
        "error": {"node": None, "message": message, "log": None, "log_tail": []},
    }


@dataclass
class CliState:
    """State of one call of the command line: click's context object.

    Attributes:
      engine: executes runs; None for processes of this machine.
      error_document: returns what ``--json`` prints for an exit code and message.
    """

    engine: Engine | None = None
    error_document: Callable[[ExitCode, str], dict[str, Any]] = error_document


_CONFIG_OPTIONS = (
    click.argument("name"),
    click.option("--profile", metavar="NAME", help="Overlay configs/profiles/NAME."),
    click.option(
        "overrides",
        "--set",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override a key, such as train.epochs=3. Repeatable.",
    ),
)


def config_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds NAME, ``--profile`` and ``--set``."""
    for option in reversed(_CONFIG_OPTIONS):
        function = option(function)
    return function


def typed_command() -> str:
    """Returns the command line of this process."""
    return shlex.join(["sluice", *sys.argv[1:]])


workers_option = click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Number of nodes to run in parallel; default: the number of cores.",
)

wait_option = click.option("--wait", is_flag=True, help="Wait for another run to end.")

workspace_option = click.option(
    "workspace_dir",
    "--workspace",
    metavar="DIR",
    help="The folder of all workspaces; default: <project root>/workspace.",
)

json_option = click.option(
    "as_json", "--json", is_flag=True, help="JSON on stdout, text on stderr."
)
