"""``sluice resume [NAME]``: resumes an unfinished run."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from runners.cli.options import (
    CliState,
    json_option,
    typed_command,
    wait_option,
    workers_option,
    workspace_option,
)
from runners.cli.run_view import run_with_view
from runners.operations import resume as operations


@click.command()
@click.argument("name", required=False)
@click.option("run_id", "--run", metavar="ID", help="The run; default: the last one.")
@workers_option
@wait_option
@workspace_option
@json_option
@click.pass_obj
def resume(state: CliState, as_json: bool, **asked: Any) -> int:
    """Resume the last failed, killed or interrupted run, of NAME or of any pipeline.

    Finished nodes do not run again. The run keeps its id and its config; if code,
    schema or data have changed since, it cannot be resumed: start a new run.
    """
    request = operations.ResumeRequest(command=typed_command(), **asked)
    operate = partial(operations.resume, request, engine=state.engine)
    return run_with_view(state, as_json, request.name or "", request.command, operate)
