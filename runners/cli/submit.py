"""``sluice submit NAME``: runs a pipeline in a service."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from runners.cli.options import (
    CliState,
    config_options,
    json_option,
    typed_command,
    workspace_option,
)
from runners.cli.run import accept_data_option, require_reason, tags_option
from runners.cli.run_view import run_with_view


@click.command()
@config_options
@click.option("follow", "--wait", is_flag=True, help="Wait for the end of the run.")
@click.option("--no-cache", is_flag=True, help="Run every node, cached or not.")
@accept_data_option
@tags_option
@workspace_option
@json_option
@click.pass_obj
def submit(
    state: CliState,
    name: str,
    as_json: bool,
    no_cache: bool,
    accept_data: str | None,
    **asked: Any,
) -> int:
    """Run the pipeline NAME on Vertex AI or Kubeflow, as --profile says.

    The spans of the data are chosen now. The run goes on without this machine; status,
    logs, report, cancel and resume work as for a run of this machine.
    """
    from runners.operations import submit as operations

    command = typed_command()
    request = operations.SubmitRequest(
        name=name,
        command=command,
        use_cache=not no_cache,
        accept_data=require_reason(accept_data),
        **asked,
    )
    operate = partial(operations.submit, request)
    return run_with_view(state, as_json, name, command, operate)
