"""``sluice report``: draws the page of a run."""

from __future__ import annotations

from functools import partial

import click

from runners.cli.echo import echo
from runners.cli.options import Result, run_option, verb
from runners.operations.draw_pages import draw


@verb()
@click.argument("name", required=False)
@run_option
def command(name: str | None, run_id: str | None) -> Result:
    """Draw the page of the last run of NAME, or of the pipeline that ran last.

    Each run has its page already, report.html in its folder; this draws it again, also
    that of a run in progress, and prints where it is.
    """
    if name is None and run_id:
        raise click.UsageError("--run needs a NAME.")
    record, page = draw(name, run_id)
    facts = {
        "pipeline": record.pipeline,
        "run_id": record.run_id,
        "status": record.status,
        "report": str(page),
    }
    return Result(facts, partial(echo, str(page)))
