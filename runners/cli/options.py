"""Options shared by several verbs, and the state of one call of the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from runners.engine import Engine


@dataclass
class CliState:
    """State of one call of the command line: click's context object.

    Attributes:
      engine: executes runs; None for processes of this machine.
      error_document: what ``--json`` prints if the verb fails; None for the form that
        all verbs share.
    """

    engine: Engine | None = None
    error_document: dict[str, Any] | None = None


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


workspace_option = click.option(
    "workspace_dir",
    "--workspace",
    metavar="DIR",
    help="The folder of all workspaces; default: <project root>/workspace.",
)

json_option = click.option(
    "as_json", "--json", is_flag=True, help="JSON on stdout, text on stderr."
)
