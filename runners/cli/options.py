"""Options that several verbs share, and what they resolve to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sluice.project import activate
from sluice.workspace import Workspace, locate

if TYPE_CHECKING:
    from pipeline.config.config import Config

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
    help="Where workspaces are kept, instead of <project root>/workspace.",
)

json_option = click.option(
    "as_json", "--json", is_flag=True, help="JSON on stdout, text on stderr."
)


def validated_config(
    name: str, profile: str | None, overrides: tuple[str, ...]
) -> Config:
    """Returns the config that the options name, checked and completed.

    Raises:
      UsageError: it is not to be found or is wrong.
    """
    from pipeline.config.load import load_config
    from pipeline.config.validate import validate_config

    config = load_config(name, profile=profile, overrides=overrides)
    activate(config.root)
    return validate_config(config).config


def workspace_of(config: Config, workspace_dir: str | None) -> Workspace:
    """Returns the workspace of a config's pipeline."""
    return locate(config.root, config.name, workspace_dir)


def serving_dir_of(config: Config, workspace_dir: str | None) -> Path:
    """Returns where the versions of a config's model are pushed to."""
    return config.serving_dir or workspace_of(config, workspace_dir).serving
