"""``sluice report``: draws the page of a run, or of all runs of a pipeline."""

from __future__ import annotations

from functools import partial

import click

from runners.cli.echo import echo
from runners.cli.options import Result, run_option, verb
from runners.operations.draw_pages import draw, draw_all


@verb()
@click.argument("name", required=False)
@run_option
@click.option(
    "--all",
    "all_runs",
    is_flag=True,
    help="The page of all runs of NAME, with trends and a link to each report.",
)
def command(name: str | None, run_id: str | None, all_runs: bool) -> Result:
    """Draw the page of the last run of NAME, or of the pipeline that ran last.

    Each run has its page already, report.html in its folder; this draws it again, also
    that of a run in progress, and prints where it is.
    """
    if (name is None and (all_runs or run_id)) or (all_runs and run_id):
        raise click.UsageError("--all and --run need a NAME, and exclude each other.")
    record = None
    if name is not None and all_runs:
        pipeline, page = draw_all(name)
    else:
        record, page = draw(name, run_id)
        pipeline = record.pipeline
    facts = {
        "pipeline": pipeline,
        "run_id": record and record.run_id,
        "status": record and record.status,
        "report": str(page),
    }
    return Result(facts, partial(echo, str(page)))
