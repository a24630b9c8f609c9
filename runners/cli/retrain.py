"""``sluice retrain NAME``: runs a pipeline if there is a reason to train."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from runners.cli.options import (
    Result,
    config_options,
    verb,
    wait_option,
    workers_option,
)
from runners.cli.run import accept_data_option, start_run, tags_option, to_option
from runners.engine import Engine
from sluice.machine_resources import usable_cores
from sluice.node_kinds import RETRAIN_GATE


@verb()
@config_options
@workers_option
@wait_option
@click.option("--dry-run", is_flag=True, help="Decide, and train in no case.")
@to_option
@click.option(
    "--skip-exit-code",
    type=click.IntRange(0, 255),
    default=0,
    metavar="CODE",
    help="Exit code where there is nothing to do; default: 0.",
)
@accept_data_option
@tags_option
@click.pass_obj
def command(
    engine: Engine | None,
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    workers: int | None,
    dry_run: bool,
    to_nodes: tuple[str, ...],
    skip_exit_code: int,
    **options: Any,
) -> Result:
    """Run the pipeline NAME, and train if its section retrain has a reason to.

    Without a reason the run ends after the data gate, and nothing is pushed.
    """
    if dry_run and to_nodes:
        raise click.UsageError("--dry-run ends with the decision: leave out --to.")
    result = start_run(
        engine,
        (name, profile, overrides),
        workers=workers or usable_cores(),
        to_nodes=[RETRAIN_GATE] if dry_run else to_nodes,
        dry_run=dry_run,
        **options,
    )
    assert isinstance(result.facts, dict)
    status = result.facts["status"]
    # A part of the graph that has nothing new says nothing of the rest.
    is_skipped = status == "skipped" or (status == "up_to_date" and not to_nodes)
    return replace(result, exit_code=skip_exit_code) if is_skipped else result
