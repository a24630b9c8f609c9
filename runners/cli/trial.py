"""``sluice try NAME``: trains and judges a model without pushing it."""

from __future__ import annotations

import click

from runners.cli.options import (
    Result,
    config_options,
    verb,
    wait_option,
    workers_option,
)
from runners.cli.run import (
    accept_data_option,
    no_cache_option,
    start_run,
    tags_option,
    to_option,
)
from runners.engine import Engine
from sluice.machine_resources import usable_cores


@verb("try")
@config_options
@workers_option
@wait_option
@no_cache_option
@to_option
@accept_data_option
@tags_option
@click.pass_obj
def command(
    engine: Engine | None,
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    workers: int | None,
    wait: bool,
    no_cache: bool,
    to_nodes: tuple[str, ...],
    accept_data: str | None,
    tags: tuple[str, ...],
) -> Result:
    """Run the pipeline NAME up to the model gate: nothing is pushed.

    The model never becomes a baseline, and the data is not stored as accepted. A run
    with the same settings takes what was trained from the cache, and pushes it. Exit
    codes are those of 'sluice run'.
    """
    return start_run(
        engine,
        (name, profile, overrides),
        always=True,
        tags=tags,
        wait=wait,
        workers=workers or usable_cores(),
        use_cache=not no_cache,
        to_nodes=list(to_nodes),
        accept_data=accept_data,
        trial=True,
    )
