"""``sluice models list NAME``: the versions that were pushed."""

from __future__ import annotations

import json

import click
from rich.table import Table

from pipeline.load_config import load_config
from runners.cli.console import make_console, plain
from runners.cli.next_command import next_command
from runners.cli.options import (
    config_options,
    json_option,
    serving_dir_of,
    workspace_option,
)
from serving.model_store import ModelStore


@click.group()
def models() -> None:
    """The pushed versions of a pipeline's model."""


@models.command("list")
@config_options
@workspace_option
@json_option
def list_models(
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    workspace_dir: str | None,
    as_json: bool,
) -> None:
    """List the pushed versions of the pipeline NAME, newest first."""
    config = load_config(name, profile=profile, overrides=overrides)
    versions = ModelStore(serving_dir_of(config, workspace_dir)).versions()[::-1]
    if as_json:
        rows = [
            {
                "version": item.version,
                "uri": str(item.path),
                "digest": item.digest,
                "published_at": item.published_at,
                "facts": item.facts,
            }
            for item in versions
        ]
        click.echo(json.dumps(rows))
        return
    if not versions:
        command = next_command("run", name)
        click.echo(f"no version of {name} is pushed yet; try: {command}")
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("version", "published", "run", "digest"):
        table.add_column(column, no_wrap=True)
    table.add_column("path", overflow="fold")
    for item in versions:
        table.add_row(
            plain(str(item.version)),
            plain((item.published_at or "")[:19]),
            plain(str(item.facts.get("pipeline_run_id") or "")),
            plain((item.digest or "")[:12]),
            plain(str(item.path)),
        )
    make_console().print(table)
