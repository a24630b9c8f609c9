"""``sluice submit NAME``: runs a pipeline in a service."""

from __future__ import annotations

import click

from runners.cli.options import (
    config_options,
    json_option,
    typed_command,
    workspace_option,
)
from runners.cli.run import accept_data_option, no_cache_option, tags_option
from runners.cli.run_view import run_with_view
from runners.engine import Observer
from sluice.record.run_record import RunOptions, RunRecord


@click.command()
@config_options
@click.option("--wait", is_flag=True, help="Wait for the end of the run.")
@no_cache_option
@accept_data_option
@tags_option
@workspace_option
@json_option
def submit(
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    wait: bool,
    no_cache: bool,
    accept_data: str | None,
    tags: tuple[str, ...],
    as_json: bool,
) -> int:
    """Run the pipeline NAME on Vertex AI, as --profile says.

    The spans of the data are chosen now. The run goes on without this machine; status,
    logs, report and cancel work as for a run of this machine. Submit again to continue
    one that failed: the service has its finished nodes in its cache.
    """
    from pipeline.config.load import load_config
    from runners.operations import submit as operations

    command = typed_command()
    options = RunOptions(use_cache=not no_cache, accept_data=accept_data)

    def operate(observer: Observer) -> RunRecord:
        config = load_config(name, profile=profile, overrides=overrides)
        return operations.submit(
            config, options, command=command, tags=tags, wait=wait, observer=observer
        )

    return run_with_view(as_json, operate)
