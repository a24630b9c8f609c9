"""Options shared by several verbs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

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
