"""``sluice schema infer|show|diff|accept``: the reviewed schema and the data."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from pipeline.config.config import Config
from pipeline.graph.choose_spans import choose_data
from pipeline.scaffold.sample import infer_schema, read_sample
from runners.cli.echo import echo
from runners.cli.options import Result, config_argument, verb
from runners.cli.rich_console import make_console, make_table, say
from runners.operations.compare_schema import Change, Compared, compare_schema
from runners.operations.find_run import config_words
from schemas import loader
from schemas.edit_schema import accept_change, edit_text, schema_text
from schemas.show_schema import show_schema
from sluice.errors import UsageError
from sluice.storage.output_path import write_output
from sluice.workspace import next_command


@click.group()
def command() -> None:
    """The reviewed schema of a pipeline, compared with data."""


@verb(group=command, short_help="Show the reviewed schema as a table.")
@config_argument
def show(config: Config) -> Result:
    """Show the reviewed schema of the pipeline NAME as a table."""
    path = config.schema_path
    rows = show_schema(loader.load(path), config.sensitive)
    facts = {"pipeline": config.name, "schema": str(path), "features": rows}
    return Result(facts, partial(_print_schema, path, rows))


def _print_schema(path: Path, rows: list[dict[str, str]]) -> None:
    # Most schemas have no comparators, and a narrow window has no room for them.
    titles = [title for title in rows[0] if any(row[title] for row in rows)]
    table = make_table(*titles, folded=set(titles) - {"feature", "type"})
    for row in rows:
        table.add_row(*(row[title] for title in titles))
    console = make_console()
    say(console, str(path), "dim")
    say(console)
    console.print(table)


@verb(group=command, short_help="Print a schema inferred from the current data.")
@config_argument
def infer(config: Config) -> Result:
    """Print a schema that TFDV infers from the first records of each file of NAME.

    The reviewed schema is not changed, and values of sensitive features are left out.
    """
    sample = read_sample([file.path for file in choose_data(config).files])
    label = config.label
    found = infer_schema(sample.statistics, label.feature, config.sensitive, label.task)
    text = schema_text(found)
    facts = {"pipeline": config.name, "records": sample.records, "text": text}
    return Result(facts, partial(echo, f"# {sample.text}", *text.splitlines()))


@verb(group=command, short_help="Show where data differs from the reviewed schema.")
@config_argument
def diff(config: Config) -> Result:
    """Show where data differs from the reviewed schema of the pipeline NAME.

    The data is described by the statistics of the last run. 'sluice schema accept'
    takes the name above a difference, such as payment_type.new_value.
    """
    compared = compare_schema(loader.load(config.schema_path), config)
    facts = {"changes": [change.to_dict() for change in compared.changes]}
    show = partial(_print_diff, config, compared)
    return Result({**_sides(config, compared), **facts}, show)


def _sides(config: Config, compared: Compared) -> dict[str, Any]:
    head = {"pipeline": config.name, "schema": str(config.schema_path)}
    return {**head, "source": {"run_id": compared.run_id}}


def _print_diff(config: Config, compared: Compared) -> None:
    console, changes = make_console(), compared.changes
    text = f"{config.schema_path} and the data of run {compared.run_id}"
    say(console, text if changes else f"no difference between {text}", "dim")
    for change in changes:
        say(console, change.id, "bold")
        for split, why in change.why.items():
            say(console, f"  {split}: {why}")
        if change.refusal:
            say(console, f"  cannot be accepted: {change.refusal}", "dim")
    if any(change.refusal is None for change in changes):
        command = next_command("schema", "accept", *config_words(config), "CHANGE")
        say(console, f"if the data is right: {command}", "dim")


@verb(group=command, short_help="Apply differences to the reviewed schema.")
@config_argument
@click.argument("ids", nargs=-1, metavar="[CHANGE]...")
@click.option(
    "everything",
    "--all",
    is_flag=True,
    help="Accept all differences that can be accepted.",
)
def accept(config: Config, ids: tuple[str, ...], everything: bool) -> Result:
    """Write differences into the reviewed schema of the pipeline NAME.

    CHANGE is what 'sluice schema diff' prints, such as payment_type.new_value. Only
    the block of the feature, or of its domain, is written anew.
    """
    if everything == bool(ids):
        raise click.UsageError("give each CHANGE to accept, or --all")
    path = config.schema_path.resolve()
    text = loader.read_text(path)
    before = after = loader.parse(text, path)
    compared = compare_schema(before, config)
    if everything:
        chosen = [change for change in compared.changes if not change.refusal]
        refused = [change for change in compared.changes if change.refusal]
    else:
        chosen, refused = _named(compared.changes, ids), []
    for change in chosen:
        statistics = compared.statistics.values()
        after = accept_change(after, change.kind, change.feature, statistics)
    hidden = {*config.sensitive} - {*loader.feature_names(before)}
    after = loader.without_values(after, hidden)
    if chosen and after == before:
        raise UsageError("TFDV proposes no other schema: edit it by hand", where=path)
    edited = edit_text(text, before, after, path)
    if edited != text:
        write_output(path, edited, "schema")
    changed = difflib.unified_diff(
        *(text.splitlines(), edited.splitlines()), str(path), str(path), lineterm=""
    )
    facts = {
        "accepted": [change.to_dict() for change in chosen],
        "refused": [change.to_dict() for change in refused],
    }
    lines = [*changed, *(f"left {x.id}: {x.refusal}" for x in refused)]
    show = partial(echo, *(lines or ["no difference"]))
    return Result({**_sides(config, compared), **facts}, show)


def _named(changes: Sequence[Change], ids: Sequence[str]) -> list[Change]:
    """Returns the changes of these ids.

    Raises:
      UsageError: there is none of an id, or it cannot be accepted.
    """
    known = {change.id: change for change in changes}
    for name in ids:
        if name not in known:
            raise UsageError(f"there is no difference {name!r}", examples=[*known])
        if refusal := known[name].refusal:
            raise UsageError(f"{name} cannot be accepted: {refusal}")
    return [known[name] for name in ids]
