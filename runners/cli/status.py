"""``sluice status [NAME]``: a run, or the last run of every pipeline."""

from __future__ import annotations

from functools import partial

import click

from runners.cli.echo import echo
from runners.cli.options import Result, run_option, verb
from runners.cli.rich_console import make_console, make_table, plain
from runners.cli.run_view import print_run
from runners.operations.find_run import find_run, last_runs
from sluice.record.run_record import RunRecord
from sluice.record.states import RUN_STYLES


@verb()
@click.argument("name", required=False)
@run_option
def command(name: str | None, run_id: str | None) -> Result:
    """Show a run of NAME; without NAME, the last run of every pipeline."""
    if name is not None:
        record = find_run(name, run_id).record
        return Result(record.to_dict(), partial(print_run, make_console(), record))
    records = [found.record for found in last_runs()]
    show = partial(_print_pipelines, records)
    if not records:
        show = partial(echo, "nothing has run yet; try: sluice run NAME")
    return Result([record.to_dict() for record in records], show)


def _print_pipelines(records: list[RunRecord]) -> None:
    columns = ("pipeline", "last run", "status", "served", "why")
    table = make_table(*columns, folded=("why",))
    for record in records:
        versions = [str(push.version) for push in record.pushes if push.version]
        kinds = {"dry run": record.options.dry_run, "trial": record.options.trial}
        marks = [f" ({kind})" for kind, is_so in kinds.items() if is_so]
        state = record.status.replace("_", " ") + "".join(marks)
        error = record.error.message.splitlines()[0] if record.error else None
        table.add_row(
            record.pipeline,
            record.run_id,
            plain(state, RUN_STYLES[record.status]),
            ", ".join(versions),
            error,
        )
    make_console().print(table)
