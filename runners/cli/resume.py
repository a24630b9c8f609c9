"""``sluice resume [NAME]``: resumes an unfinished run."""

from __future__ import annotations

from functools import partial

import click

from runners.cli.options import (
    CliState,
    json_option,
    run_option,
    typed_command,
    wait_option,
    workers_option,
    workspace_option,
)
from runners.cli.run_view import run_with_view
from runners.operations import resume as operations


@click.command()
@click.argument("name", required=False)
@run_option
@workers_option
@wait_option
@workspace_option
@json_option
@click.pass_obj
def resume(
    state: CliState,
    name: str | None,
    run_id: str | None,
    workers: int | None,
    wait: bool,
    as_json: bool,
) -> int:
    """Resume the last failed, killed or interrupted run, of NAME or of any pipeline.

    Finished nodes do not run again. The run keeps its id and its config; if code,
    schema or data have changed since, it cannot be resumed: start a new run.
    """
    operate = partial(
        operations.resume,
        name,
        run_id=run_id,
        command=typed_command(),
        workers=workers,
        wait=wait,
        engine=state.engine,
    )
    return run_with_view(as_json, operate)
