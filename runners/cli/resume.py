"""``sluice resume [NAME]``: resumes an unfinished run."""

from __future__ import annotations

import click

from runners.cli.options import (
    Result,
    run_option,
    verb,
    wait_option,
    workers_option,
)
from runners.cli.run_view import show_run
from runners.engine import Engine
from runners.operations.resume import resume


@verb()
@click.argument("name", required=False)
@run_option
@workers_option
@wait_option
@click.pass_obj
def command(
    engine: Engine | None,
    name: str | None,
    run_id: str | None,
    workers: int | None,
    wait: bool,
) -> Result:
    """Resume the last failed, killed or interrupted run, of NAME or of any pipeline.

    Finished nodes do not run again. The run keeps its id and its config; if code,
    schema or data have changed since, it cannot be resumed: start a new run.
    """
    return show_run(
        resume, name, run_id=run_id, workers=workers, wait=wait, engine=engine
    )
