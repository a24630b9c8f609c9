"""``sluice models list | retire NAME``: pushed versions; which are no baseline."""

from __future__ import annotations

import shlex
import sys

import click
from rich.table import Table

from pipeline.config.load import load_config
from runners.cli.console import make_console, plain
from runners.cli.next_command import next_command
from runners.cli.options import (
    config_options,
    json_option,
    serving_dir_of,
    workspace_of,
    workspace_option,
)
from runners.cli.say import say, say_json
from runners.retention.baselines import retire
from serving.model_store import ModelStore
from sluice.errors import UsageError


@click.group()
def models() -> None:
    """The models of a pipeline: pushed versions and baselines."""


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
        say_json(rows)
        return
    if not versions:
        command = next_command("run", name)
        say(f"no version of {name} is pushed yet; try: {command}")
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


@models.command("retire")
@click.argument("name")
@click.argument("reference", metavar="[VERSION|artifact:ID]", required=False)
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is recorded.")
@click.option("--damaged", is_flag=True, help="All that are damaged beyond repair.")
@workspace_option
@json_option
def retire_models(
    name: str,
    reference: str | None,
    reason: str,
    damaged: bool,
    workspace_dir: str | None,
    as_json: bool,
) -> None:
    """Let a blessed model of NAME be no baseline any more.

    A new model is compared with the latest blessed one that is neither damaged nor
    retired. What is served stays served.
    """
    if (reference is None) is not damaged:
        raise UsageError(
            "which model is to be retired is not clear",
            expected="one of VERSION, artifact:ID and --damaged",
            hint=next_command("models", "list", name),
        )
    config = load_config(name)
    workspace = workspace_of(config, workspace_dir)
    serving_dirs = [serving_dir_of(config, workspace_dir), workspace.serving]
    done = retire(
        workspace,
        serving_dirs,
        reference,
        reason=reason,
        command=shlex.join(["sluice", *sys.argv[1:]]),
    )
    if as_json:
        rows = [
            {"artifact": item.model.id, "uri": item.model.uri, "name": title}
            for item, title in done.models
        ]
        head = {"schema_version": 1, "pipeline": config.name, "reason": reason}
        say_json({**head, "retired": rows, "baseline": done.baseline})
        return
    console = make_console()
    for _, title in done.models:
        console.print(plain(f"retired: {title}"))
    if not done.models:
        console.print(plain("none was retired: no model is damaged beyond repair"))
    console.print(plain(f"the next baseline: {done.baseline or 'none'}"))
