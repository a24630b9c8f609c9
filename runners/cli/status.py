"""``sluice status [NAME]``: a run, or the last run of every pipeline."""

from __future__ import annotations

from typing import Any

import click

from runners.cli.echo import echo, echo_json, echo_warning
from runners.cli.options import json_option, workspace_option
from runners.cli.render_run import print_run
from runners.cli.rich_console import make_console, make_table, plain
from runners.operations import status as operation
from sluice.record.run_record import RunRecord
from sluice.record.states import RUN_STYLES


@click.command()
@click.argument("name", required=False)
@click.option("run_id", "--run", metavar="ID", help="The run; default: the last one.")
@workspace_option
@json_option
def status(as_json: bool, **asked: Any) -> None:
    """Show a run of NAME; without NAME, the last run of every pipeline."""
    request = operation.StatusRequest(**asked)
    records = operation.status(request, echo_warning)
    if as_json:
        rows = [record.to_dict() for record in records]
        echo_json(rows if request.name is None else rows[0])
    elif request.name is not None:
        print_run(make_console(), records[0])
    elif records:
        _print_pipelines(records)
    else:
        echo("nothing has run yet; try: sluice run NAME")


def _print_pipelines(records: list[RunRecord]) -> None:
    columns = ("pipeline", "last run", "status", "served", "why")
    table = make_table(*columns, folded="why")
    for record in records:
        versions = [str(push.version) for push in record.pushes if push.version]
        table.add_row(
            plain(record.pipeline),
            plain(record.run_id),
            plain(record.status.replace("_", " "), RUN_STYLES[record.status]),
            plain(", ".join(versions)),
            plain(_why(record)),
        )
    make_console().print(table)


def _why(record: RunRecord) -> str:
    return record.error.message.splitlines()[0] if record.error else ""
