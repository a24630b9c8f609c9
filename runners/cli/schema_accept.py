"""``sluice schema accept NAME CHANGE...``: writes differences into the schema."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence

import click

from pipeline.config.load import load_config
from runners.cli.console import make_console, plain
from runners.cli.options import config_options, json_option
from runners.cli.say import say_json
from runners.cli.schema_command import run_command, schema_command
from runners.cli.schema_compare import Compared, compare, show_diff, source_options
from schemas.diff.change import Change
from schemas.edit.edit_schema import accept_changes
from schemas.edit.schema_text import describe_edit
from sluice.errors import UsageError
from sluice.printable import printable


@click.command(short_help="Write differences into the reviewed schema.")
@config_options
@click.argument("ids", nargs=-1, metavar="[CHANGE]...")
@click.option("everything", "--all", is_flag=True, help="All that can be accepted.")
@source_options
@json_option
def accept(
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    ids: tuple[str, ...],
    everything: bool,
    run_id: str | None,
    data: bool,
    workspace_dir: str | None,
    as_json: bool,
) -> None:
    """Write differences into the reviewed schema of the pipeline NAME.

    CHANGE is what `sluice schema diff` prints in brackets, such as
    payment_type.new_value, or one of its values: "payment_type.new_value=Apple Pay".
    Without one, a terminal is asked for each. Comments and order of the file stay.
    """
    config = load_config(name, profile=profile, overrides=overrides)
    compared = compare(config, name, run_id, data, workspace_dir)
    changes = compared.diff.changes
    if ids:
        chosen = _chosen(changes, ids, name)
    elif everything:
        chosen = [change for change in changes if change.refusal is None]
    else:
        chosen = _asked(compared, name, as_json)
    edits = [edit for change in chosen for edit in change.edits]
    if edits:
        accept_changes(compared.path, compared.text, edits)
    refused = [change for change in changes if change.refusal] if everything else []
    _show_accepted(compared, name, chosen, refused, as_json)
    if as_json:
        document = {
            **compared.head(),
            "accepted": [change.to_dict() for change in chosen],
            "refused": [change.to_dict() for change in refused],
        }
        say_json(document)


def _chosen(changes: Sequence[Change], ids: Sequence[str], name: str) -> list[Change]:
    """Returns the named changes in the order of the schema."""
    whole: dict[str, Change] = {change.id: change for change in changes}
    values: dict[str, list[str]] = {}
    for wanted in ids:
        change, value = _find(whole, wanted, name)
        if change.refusal:
            raise UsageError(
                f"{change.id} cannot be accepted: {change.refusal}",
                actual=f"{change.feature}: {change.text}",
                hint=schema_command("diff", name),
            )
        values.setdefault(change.id, [])
        values[change.id] += change.values if value is None else [value]
    return [
        change.only(tuple(dict.fromkeys(values[change.id])))
        if change.values
        else change
        for change in changes
        if change.id in values
    ]


def _find(
    whole: dict[str, Change], wanted: str, name: str
) -> tuple[Change, str | None]:
    if wanted in whole:
        return whole[wanted], None
    for change in whole.values():
        value = wanted.removeprefix(f"{change.id}=")
        if value != wanted and value in change.values:
            return change, value
    near = difflib.get_close_matches(wanted, whole, n=1)
    raise UsageError(
        f"there is no difference {wanted!r}",
        expected="one of these"
        if whole
        else "nothing to accept: schema and data do not differ",
        examples=near or list(whole),
        hint=schema_command("diff", name),
    )


def _asked(compared: Compared, name: str, as_json: bool) -> list[Change]:
    possible = [item for item in compared.diff.changes if item.refusal is None]
    if not possible:
        return []
    if as_json or not sys.stdin.isatty():
        raise UsageError(
            "say which differences to accept",
            examples=[change.id for change in possible],
            hint=f"{schema_command('accept', name, possible[0].id)}, or --all",
        )
    show_diff(compared, name, as_json)
    return [
        item
        for item in possible
        if click.confirm(f"accept {printable(item.id)}?", err=True)
    ]


def _show_accepted(
    compared: Compared,
    name: str,
    chosen: Sequence[Change],
    refused: Sequence[Change],
    as_json: bool,
) -> None:
    console = make_console(to_stderr=as_json)
    if chosen:
        console.print(plain(str(compared.path), "dim"), soft_wrap=True)
    for change in chosen:
        console.print(plain(f"accepted {change.id}"), soft_wrap=True)
        for line in (line for edit in change.edits for line in describe_edit(edit)):
            text = plain(f"  + {line}", "green")
            console.print(text, soft_wrap=True)
    for change in refused:
        text = plain(f"left {change.id}: {change.refusal}")
        console.print(text, soft_wrap=True)
    if chosen:
        line = f"next: review and commit the file, then {run_command(name)}"
        console.print(plain(line, "dim"), soft_wrap=True)
    else:
        console.print("nothing to accept" if not refused else "nothing was accepted")
    new = [change for change in chosen if change.kind == "new_feature"]
    if new and compared.config.features is None:
        console.print("note: the config names no features, so the model uses new ones")
