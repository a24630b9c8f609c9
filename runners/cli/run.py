"""``sluice run NAME``: runs a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pipeline.config.find import find_config
from runners.cache.up_to_date import is_probably_up_to_date
from runners.cli.options import (
    Result,
    config_options,
    exit_on_sigint,
    typed_command,
    verb,
    wait_option,
    workers_option,
)
from runners.engine import Engine
from runners.local.engine import LocalEngine
from sluice.machine_resources import usable_cores
from sluice.project import find_root
from sluice.workspace import locate


def _require_reason(
    _context: click.Context, _option: click.Parameter, reason: str | None
) -> str | None:
    """Refuses an empty reason, and an option that was taken for one."""
    if reason is not None and (not reason.strip() or reason.startswith("-")):
        raise click.BadParameter("needs a reason.")
    return reason


accept_data_option = click.option(
    "--accept-data",
    metavar="REASON",
    callback=_require_reason,
    help="Override the data gate once, with a reason that is recorded.",
)
tags_option = click.option(
    "tags",
    "--tag",
    multiple=True,
    metavar="KEY[=VALUE]",
    help="A tag of the run, which 'sluice runs' shows. Repeatable.",
)
no_cache_option = click.option(
    "--no-cache", is_flag=True, help="Run every node, cached or not."
)
to_option = click.option(
    "to_nodes", "--to", multiple=True, metavar="NODE", help="Run it and its upstream."
)


@verb()
@config_options
@workers_option
@wait_option
@no_cache_option
@click.option(
    "forced", "--force", multiple=True, metavar="NODE", help="Run NODE again."
)
@to_option
@accept_data_option
@click.option(
    "--without-baseline",
    metavar="REASON",
    callback=_require_reason,
    help="Begin although the metadata is lost, with a reason that is recorded.",
)
@tags_option
@click.option(
    "--no-push", is_flag=True, help="Only try, as 'sluice try' does: push no model."
)
@click.pass_obj
def command(
    engine: Engine | None,
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    workers: int | None,
    no_cache: bool,
    no_push: bool,
    **options: Any,
) -> Result:
    """Run the pipeline NAME (configs/NAME.yaml, or a path to a config).

    With --to a part of the graph runs.
    """
    return start_run(
        engine,
        (name, profile, overrides),
        always=True,
        workers=workers or usable_cores(),
        use_cache=not no_cache,
        trial=no_push,
        **options,
    )


def start_run(
    engine: Engine | None,
    source: tuple[str, str | None, Sequence[str]],
    *,
    always: bool = False,
    tags: Sequence[str],
    wait: bool,
    **options: Any,
) -> Result:
    """Runs a pipeline and shows it.

    Args:
      engine: None for processes of this machine.
      source: name, profile and overrides of the config.
      always: whether it trains without a reason to, as if the config had no section
        ``retrain``.
      tags: of the run, see ``runners.operations.run``.
      wait: whether to wait for another run to end.
      **options: those of ``RunOptions``, whose module takes 0.1 s to import.
    """
    name, profile, overrides = source
    command, file = typed_command(), find_config(name, Path.cwd())
    workspace = locate(find_root(file.parent), file.stem)
    if engine is None and not is_probably_up_to_date(workspace, command):
        # It imports TFX, most of what a small run takes, on a core of its own.
        engine = LocalEngine()
    with exit_on_sigint():
        from pipeline.config.load import load_config
        from runners.cli.run_view import show_run
        from runners.operations.run import run
        from sluice.record.run_record import RunOptions

        config = load_config(str(file), profile=profile, overrides=overrides)
    if always:
        config = config.model_copy(update={"retrain": None})
    return show_run(
        run, config, RunOptions(**options), tags=tags, wait=wait, engine=engine
    )
