"""``sluice submit NAME``: runs a pipeline in a service."""

from __future__ import annotations

import click

from pipeline.config.config import Config
from runners.cli.options import Result, config_argument, verb
from runners.cli.run import accept_data_option, no_cache_option, tags_option
from runners.cli.run_view import show_run
from runners.operations.submit import submit
from sluice.record.run_record import RunOptions


@verb()
@config_argument
@click.option("--wait", is_flag=True, help="Wait for the end of the run.")
@no_cache_option
@accept_data_option
@tags_option
def command(
    config: Config,
    wait: bool,
    no_cache: bool,
    accept_data: str | None,
    tags: tuple[str, ...],
) -> Result:
    """Run the pipeline NAME on Vertex AI, as --profile says.

    The spans of the data are chosen now. The run goes on without this machine; status,
    logs, report and cancel work as for a run of this machine. Submit again to continue
    one that failed: the service has its finished nodes in its cache.
    """
    options = RunOptions(use_cache=not no_cache, accept_data=accept_data)
    return show_run(submit, config, options, tags=tags, wait=wait)
