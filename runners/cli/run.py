"""``sluice run NAME``: runs a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import click

from pipeline.config.find import find_config
from runners.cache.up_to_date import is_probably_up_to_date
from runners.cli.exit_on_sigint import exit_on_sigint
from runners.cli.options import (
    CliState,
    config_options,
    json_option,
    typed_command,
    wait_option,
    workers_option,
    workspace_option,
)
from runners.local.engine import LocalEngine
from sluice.errors import UsageError
from sluice.project import find_root
from sluice.workspace import locate

accept_data_option = click.option(
    "--accept-data",
    metavar="REASON",
    help="Override the data gate once, with a reason that is recorded.",
)
tags_option = click.option(
    "tags",
    "--tag",
    multiple=True,
    metavar="KEY[=VALUE]",
    help="A tag of the run, which `sluice runs` shows. Repeatable.",
)

_RUN_OPTIONS = (
    workers_option,
    wait_option,
    click.option("--no-cache", is_flag=True, help="Run every node, cached or not."),
    click.option(
        "forced",
        "--force",
        multiple=True,
        metavar="NODE",
        help="Run NODE even if it is cached.",
    ),
    click.option(
        "from_nodes",
        "--from",
        multiple=True,
        metavar="NODE",
        help="Run NODE and what is downstream of it.",
    ),
    click.option(
        "to_nodes",
        "--to",
        multiple=True,
        metavar="NODE",
        help="Run NODE and what is upstream of it.",
    ),
    accept_data_option,
    tags_option,
    click.option("only", "--only", metavar="NODE", help="Run only NODE."),
)


def _run_options(function: Callable) -> Callable:
    for option in reversed(_RUN_OPTIONS):
        function = option(function)
    return function


@click.command()
@config_options
@_run_options
@workspace_option
@json_option
@click.pass_obj
def run(
    state: CliState,
    no_cache: bool,
    only: str | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """Run the pipeline NAME (configs/NAME.yaml, or a path to a config).

    With --from, --to or --only a part of the graph runs, on the outputs that the newest
    run has of the rest.
    """
    asked["accept_data"] = require_reason(asked["accept_data"])
    if only:
        if asked["from_nodes"] or asked["to_nodes"]:
            raise click.UsageError("--only cannot be used with --from or --to.")
        asked["from_nodes"] = asked["to_nodes"] = (only,)
    name, command = asked["name"], typed_command()
    prewarmed = (
        nullcontext(state.engine)
        if state.engine
        else _prewarm(name, asked["workspace_dir"], command)
    )
    with prewarmed as chosen:
        with exit_on_sigint():
            # While TFX is imported in another process.
            from runners.cli.run_view import run_with_view
            from runners.operations import run as operations

        request = operations.RunRequest(
            command=command, use_cache=not no_cache, **asked
        )
        operate = partial(operations.run, request, engine=chosen)
        return run_with_view(state, as_json, name, command, operate)


def require_reason(accept_data: str | None) -> str | None:
    """Returns the reason of ``--accept-data`` without spaces around it.

    Raises:
      click.UsageError: it is no line of text.
    """
    if accept_data is None:
        return None
    accept_data = accept_data.strip()
    if not accept_data:
        raise click.UsageError("--accept-data needs a reason.")
    if not accept_data.isprintable():
        raise click.UsageError("--accept-data needs a reason of one line of text.")
    if accept_data.startswith("-"):
        raise click.UsageError("--accept-data needs a reason, not an option.")
    return accept_data


@contextmanager
def _prewarm(
    name: str, workspace_dir: str | None, command: str
) -> Iterator[LocalEngine | None]:
    """Starts to import TFX before anything else is imported or checked.

    The import is most of what a small run takes, and has a core of its own meanwhile.

    Yields:
      The engine, which is ended if no run comes; None where the run will probably have
      nothing to do, or cannot be, for a reason that it will find and say itself.
    """
    engine = _start(name, workspace_dir, command)
    with engine or nullcontext():
        yield engine


def _start(name: str, workspace_dir: str | None, command: str) -> LocalEngine | None:
    try:
        config_file = find_config(name, Path.cwd())
        root = find_root(config_file.parent)
        workspace = locate(root, config_file.stem, workspace_dir)
        if is_probably_up_to_date(workspace, config_file, command):
            return None
        engine = LocalEngine()
        engine.prewarm(root)
        return engine
    except UsageError:
        return None
