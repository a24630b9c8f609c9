"""``sluice schema accept NAME CHANGE...``: applies changes to the reviewed schema."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from runners.cli.echo import echo_json, echo_warning
from runners.cli.options import config_options, json_option
from runners.cli.rich_console import make_console, print_line
from runners.cli.schema_diff import print_diff, source_options
from runners.operations.schema import accept as operation
from runners.operations.schema.diff import Compared
from runners.operations.schema.source import SchemaRequest
from schemas.diff.change import Change
from schemas.edit.schema_text import describe_edit
from sluice.printable import printable


@click.command(short_help="Apply differences to the reviewed schema.")
@config_options
@click.argument("ids", nargs=-1, metavar="[CHANGE]...")
@click.option(
    "everything",
    "--all",
    is_flag=True,
    help="Accept all differences that can be accepted.",
)
@source_options
@json_option
def accept(as_json: bool, **asked: Any) -> None:
    """Write differences into the reviewed schema of the pipeline NAME.

    CHANGE is what `sluice schema diff` prints in brackets, such as
    payment_type.new_value, or one of its values: "payment_type.new_value=Apple Pay".
    Without a CHANGE each one is confirmed in the terminal. Comments and the order of
    the file are kept.
    """
    request = operation.AcceptRequest(**asked)
    choose = None if as_json or not sys.stdin.isatty() else _confirm_changes
    accepted = operation.accept(request, choose, echo_warning)
    _print_accepted(accepted, request, as_json)
    if as_json:
        echo_json(accepted.to_dict())


def _confirm_changes(compared: Compared, possible: Sequence[Change]) -> list[Change]:
    print_diff(compared, as_json=False)
    return [
        item
        for item in possible
        if click.confirm(f"accept {printable(item.id)}?", err=True)
    ]


def _print_accepted(
    accepted: operation.Accepted, request: SchemaRequest, as_json: bool
) -> None:
    compared, chosen, refused = accepted.compared, accepted.changes, accepted.refused
    console = make_console(to_stderr=as_json)
    if chosen:
        print_line(console, str(compared.path), "dim")
    for change in chosen:
        print_line(console, f"accepted {change.id}")
        for line in (line for edit in change.edits for line in describe_edit(edit)):
            print_line(console, f"  + {line}", "green")
    for change in refused:
        print_line(console, f"left {change.id}: {change.refusal}")
    if chosen:
        line = f"next: review and commit the file, then {request.run_command()}"
        print_line(console, line, "dim")
    else:
        console.print("nothing to accept" if not refused else "nothing was accepted")
    new = [change for change in chosen if change.kind == "new_feature"]
    if new and compared.config.features is None:
        console.print("note: the config names no features, so the model uses new ones")
