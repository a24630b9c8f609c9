"""``sluice config NAME``: prints the config with overlays and defaults filled in."""

from __future__ import annotations

import click

from pipeline.load_config import load_config, to_yaml
from runners.cli.options import config_options


@click.command()
@config_options
def config(name: str, profile: str | None, overrides: tuple[str, ...]) -> None:
    """Print the resolved config of NAME as YAML."""
    resolved = load_config(name, profile=profile, overrides=overrides)
    click.echo(to_yaml(resolved), nl=False)
