"""``sluice models list|retire NAME``: pushed versions and baselines."""

from __future__ import annotations

from typing import Any

import click

from runners.cli.echo import echo, echo_json, echo_warning
from runners.cli.options import (
    config_options,
    json_option,
    typed_command,
    workspace_option,
)
from runners.cli.rich_console import make_console, make_table, plain, print_line
from runners.operations import models as operation
from runners.operations.pipeline_request import PipelineRequest
from sluice.errors import UsageError


@click.group()
def models() -> None:
    """The models of a pipeline: pushed versions and baselines."""


@models.command("list")
@config_options
@workspace_option
@json_option
def list_models(as_json: bool, **asked: Any) -> None:
    """List the pushed versions of the pipeline NAME, newest first.

    All their files are read: a version that differs from what was pushed is damaged.
    """
    request = PipelineRequest(**asked)
    listed = operation.list_models(request, echo_warning)
    if as_json:
        echo_json([item.to_dict() for item in listed])
    elif listed:
        _print_versions(listed)
    else:
        command = request.next_command("run", request.name)
        echo(f"no version of {request.name} has been pushed yet; try: {command}")


def _print_versions(listed: list[operation.ListedModel]) -> None:
    columns = ("version", "published", "run", "digest", "state", "path")
    table = make_table(*columns, folded="path")
    for item in listed:
        version = item.version
        table.add_row(
            plain(str(version.version)),
            plain((version.published_at or "")[:19]),
            plain(str(version.facts.get("pipeline_run_id") or "")),
            plain((version.digest or "")[:12]),
            plain(", ".join(item.flaws) or "ok", "yellow" if item.flaws else ""),
            plain(version.uri),
        )
    console = make_console()
    console.print(table)
    for item in listed:
        for state, why in item.flaws.items():
            print_line(
                console, f"version {item.version.version} is {state}: {why}", "yellow"
            )


@models.command("retire")
@click.argument("name")
@click.argument("reference", metavar="[VERSION|artifact:ID]", required=False)
@click.option(
    "--reason", required=True, metavar="TEXT", help="The reason; it is recorded."
)
@click.option(
    "--damaged", is_flag=True, help="Retire all models that are damaged beyond repair."
)
@workspace_option
@json_option
def retire_models(damaged: bool, as_json: bool, **asked: Any) -> None:
    """Retire a blessed model of NAME as a baseline: no new model is compared with it.

    The baseline is the latest blessed model that is neither damaged nor retired. A
    retired model that is served stays served.
    """
    request = operation.RetireRequest(**asked, command=typed_command())
    if (request.reference is None) is not damaged:
        raise UsageError(
            "which model to retire is ambiguous",
            expected="one of VERSION, artifact:ID and --damaged",
            hint=request.next_command("models", "list", request.name),
        )
    done = operation.retire_models(request)
    if as_json:
        echo_json(done.to_dict())
        return
    console = make_console()
    for _, title in done.retired.models:
        console.print(plain(f"retired: {title}"))
    if not done.retired.models:
        console.print(plain("nothing was retired: no model is damaged beyond repair"))
    console.print(plain(f"the next baseline: {done.retired.baseline or 'none'}"))
