"""``sluice schema diff|accept NAME``: where data differs from the reviewed schema."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from pipeline.config.config import Config
from runners.cli.options import Result, config_argument, json_result, workspace_option
from runners.cli.rich_console import make_console, plain, say
from runners.operations.compare_schema import Compared, compare_schema
from runners.operations.pipeline_request import config_words, next_command
from schemas.diff.change import Change
from schemas.edit.edit_schema import accept_changes
from schemas.edit.schema_text import describe_edit
from sluice.errors import UsageError


def _source_options(function: Callable[..., Any]) -> Callable[..., Any]:
    run = click.option(
        "run_id", "--run", metavar="ID", help="Use the statistics of this run."
    )
    data = click.option(
        "--data", is_flag=True, help="Read all records of the files instead."
    )
    return run(data(workspace_option(function)))


@click.command(short_help="Show where data differs from the reviewed schema.")
@config_argument
@_source_options
@json_result
def diff(config: Config, run_id: str | None, data: bool) -> Result:
    """Show where data differs from the reviewed schema of the pipeline NAME.

    The data is described by the statistics of the last run (StatisticsGen), or with
    --data by all records of the config's files as they are now. `sluice schema accept`
    takes the name in brackets at the end of a line.
    """
    compared = compare_schema(config, run_id=run_id, data=data)
    changes = [change.to_dict() for change in compared.diff.changes]
    facts = {"changes": changes, "notes": list(compared.diff.notes)}
    show = partial(_print_diff, compared, _accept_command(config, run_id, data))
    return Result({**compared.head(), **facts}, show)


@click.command(short_help="Apply differences to the reviewed schema.")
@config_argument
@click.argument("ids", nargs=-1, metavar="[CHANGE]...")
@click.option(
    "everything",
    "--all",
    is_flag=True,
    help="Accept all differences that can be accepted.",
)
@_source_options
@json_result
def accept(
    config: Config,
    ids: tuple[str, ...],
    everything: bool,
    run_id: str | None,
    data: bool,
) -> Result:
    """Write differences into the reviewed schema of the pipeline NAME.

    CHANGE is what `sluice schema diff` prints in brackets, such as
    payment_type.new_value, or one of its values: "payment_type.new_value=Apple Pay".
    Comments and the order of the file are kept.
    """
    compared = compare_schema(config, run_id=run_id, data=data)
    changes = compared.diff.changes
    chosen = [change for change in changes if change.refusal is None]
    if ids:
        chosen = _named(changes, ids)
    elif chosen and not everything:
        command = _accept_command(config, run_id, data)(chosen[0].id)
        raise UsageError(
            "select the differences to accept",
            examples=[change.id for change in chosen],
            hint=f"{command}, or --all",
        )
    if edits := [edit for change in chosen for edit in change.edits]:
        accept_changes(compared.path, compared.text, edits)
    refused = [change for change in changes if change.refusal and everything]
    facts = {
        "accepted": [change.to_dict() for change in chosen],
        "refused": [change.to_dict() for change in refused],
    }
    show = partial(_print_accepted, compared, chosen, refused)
    return Result({**compared.head(), **facts}, show)


def _accept_command(
    config: Config, run_id: str | None, data: bool
) -> Callable[[str], str]:
    """Returns what makes ``sluice schema accept`` of the same config and data."""
    name, *options = config_words(config)
    options += ["--data"] if data else ["--run", run_id] if run_id else []
    return lambda change: next_command("schema", "accept", name, change, *options)


def _named(changes: Sequence[Change], ids: Sequence[str]) -> list[Change]:
    """Returns the named changes, or parts of them, in the order of the schema."""
    wanted: dict[str, list[str]] = {}
    for item in ids:
        change, values = _find(changes, item)
        wanted[change.id] = [*wanted.get(change.id, ()), *values]
    return [
        change.only(wanted[change.id]) if change.values else change
        for change in changes
        if change.id in wanted
    ]


def _find(changes: Sequence[Change], wanted: str) -> tuple[Change, Sequence[str]]:
    """Returns the change of an id, and the values of it that are meant."""
    for change in changes:
        value = wanted.removeprefix(f"{change.id}=")
        if wanted == change.id or (value != wanted and value in change.values):
            if change.refusal:
                raise UsageError(f"{wanted} cannot be accepted: {change.refusal}")
            return change, list(change.values) if wanted == change.id else [value]
    known = [change.id for change in changes]
    raise UsageError(
        f"there is no difference {wanted!r}",
        expected="one of these" if known else "nothing: schema and data do not differ",
        examples=difflib.get_close_matches(wanted, known, n=1) or known,
    )


def _print_diff(compared: Compared, accept_command: Callable[[str], str]) -> None:
    """Prints the differences and their ids."""
    console = make_console()
    observed, changes = compared.source.observed, compared.diff.changes
    path, here = compared.path, Path.cwd()
    for fact in (
        f"schema  {path.relative_to(here) if path.is_relative_to(here) else path}",
        f"data    {compared.source.text}",
        f"        {observed.records:,} records, splits: {', '.join(observed.splits)}",
    ):
        say(console, fact, "dim")
    for change in changes:
        line = plain(f"{change.feature}: {change.text}")
        line.append_text(plain(f"  [{change.id}]", "dim"))
        console.print(line, soft_wrap=True)
        if change.refusal:
            say(console, f"  cannot be accepted: {change.refusal}", "dim")
    for note in compared.diff.notes:
        say(console, f"note: {note}", "dim")
    if not changes:
        say(console, "no difference")
    possible = [change.id for change in changes if not change.refusal]
    if possible:
        command = accept_command(possible[0] if len(possible) == 1 else "CHANGE...")
        say(console)
        say(console, f"if the data is right: {command}", "dim")


def _print_accepted(
    compared: Compared, chosen: Sequence[Change], refused: Sequence[Change]
) -> None:
    console = make_console()
    for change in chosen:
        say(console, f"accepted {change.id}")
        for line in (line for edit in change.edits for line in describe_edit(edit)):
            say(console, f"  + {line}", "green")
    for change in refused:
        say(console, f"left {change.id}: {change.refusal}")
    if chosen:
        command = next_command("run", *config_words(compared.config))
        say(console, f"next: review and commit {compared.path}, then {command}", "dim")
    else:
        say(console, "nothing was accepted" if refused else "nothing to accept")
    new = [change for change in chosen if change.kind == "new_feature"]
    if new and compared.config.features is None:
        text = "note: the config names no features, so the model uses new ones"
        say(console, text)
