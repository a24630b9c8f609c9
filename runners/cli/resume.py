"""``sluice resume [NAME]``: resumes an unfinished run."""

from __future__ import annotations

import click

from runners.cli.options import (
    Result,
    run_option,
    typed_command,
    verb,
    wait_option,
    workers_option,
)
from runners.cli.run_view import RunView
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
    with RunView() as view:
        record = resume(
            name,
            run_id=run_id,
            command=typed_command(),
            workers=workers,
            wait=wait,
            observer=view,
            engine=engine,
        )
    return view.result(record)
