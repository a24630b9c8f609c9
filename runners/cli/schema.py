"""``sluice schema infer|show|diff|accept``: the reviewed schema and the data."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from pipeline.config.config import Config
from pipeline.scaffold.sample import infer_schema
from runners.cli.echo import echo
from runners.cli.options import Result, config_argument, verb
from runners.cli.rich_console import make_console, make_table, plain, say
from runners.operations.compare_schema import (
    Change,
    Compared,
    compare_schema,
    from_data,
)
from runners.operations.pipeline_request import config_words, next_command
from schemas import loader
from schemas.edit_schema import accept_change, edit_text, schema_text
from schemas.loader import feature_names, load, without_values
from schemas.show_schema import show_schema
from sluice.errors import DataError, UsageError
from sluice.storage.output_path import resolve_output_path, write_output


@click.group()
def schema() -> None:
    """The reviewed schema of a pipeline, compared with data."""


@verb(group=schema, short_help="Show the reviewed schema as a table.")
@config_argument
def show(config: Config) -> Result:
    """Show the reviewed schema of the pipeline NAME as a table."""
    path = config.schema_path
    rows = show_schema(load(path), config.sensitive)
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


@verb(group=schema, short_help="Print a schema inferred from the current data.")
@config_argument
@click.option(
    "--examples", metavar="PATTERN", help="Use these files instead of the config's."
)
@click.option(
    "-o", "--output", metavar="FILE", help="Write to FILE, which must not exist."
)
def infer(config: Config, examples: str | None, output: str | None) -> Result:
    """Print a schema inferred by TFDV from all records of the pipeline NAME.

    The reviewed schema is not changed, and values of sensitive features are left out.
    """
    path = resolve_output_path(output, Path.cwd(), "--output") if output else None
    if path is not None and path.exists():
        raise UsageError("the file exists", where=path)
    source = from_data(config, examples, as_one=True)
    records = sum(source.splits.values())
    if not records:
        raise DataError(f"there are no records to infer a schema from: {source.text}")
    (statistics,) = source.statistics.values()
    found = infer_schema(statistics, config.label.feature, config.sensitive)
    if config.label.feature not in feature_names(found):
        echo(f"note: no record has the label {config.label.feature}", err=True)
    text = schema_text(found)
    counted = f"{records:,} {source.text}"
    show = partial(echo, *text.rstrip("\n").split("\n"))
    if path is not None:
        write_output(path, text, "schema")
        told = f"wrote {output}: {len(found.feature):,} features of {counted}"
        show = partial(echo, told)
    else:
        echo(counted, err=True)
    facts = {"pipeline": config.name, "records": records}
    return Result({**facts, "text": text, "path": output}, show)


def _source_options(function: Callable[..., Any]) -> Callable[..., Any]:
    run = click.option(
        "run_id", "--run", metavar="ID", help="Use the statistics of this run."
    )
    data = click.option(
        "--data", is_flag=True, help="Read all records of the files instead."
    )
    return run(data(function))


@verb(group=schema, short_help="Show where data differs from the reviewed schema.")
@config_argument
@_source_options
def diff(config: Config, run_id: str | None, data: bool) -> Result:
    """Show where data differs from the reviewed schema of the pipeline NAME.

    The data is described by the statistics of the last run (StatisticsGen), or with
    --data by all records of the config's files as they are now. `sluice schema accept`
    takes the name in brackets at the end of a line.
    """
    compared = compare_schema(config, run_id=run_id, data=data)
    facts = {"changes": [change.to_dict() for change in compared.changes]}
    show = partial(_print_diff, compared, _accept_command(config, run_id, data))
    return Result({**compared.head(), **facts}, show)


@verb(group=schema, short_help="Apply differences to the reviewed schema.")
@config_argument
@click.argument("ids", nargs=-1, metavar="[CHANGE]...")
@click.option(
    "everything",
    "--all",
    is_flag=True,
    help="Accept all differences that can be accepted.",
)
@_source_options
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
    Only the block of the feature, or of its domain, is written anew.
    """
    compared = compare_schema(config, run_id=run_id, data=data)
    changes = compared.changes
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
    lines = _accept(compared, chosen)
    refused = [change for change in changes if change.refusal and everything]
    facts = {
        "accepted": [change.to_dict() for change in chosen],
        "refused": [change.to_dict() for change in refused],
    }
    show = partial(_print_accepted, compared, chosen, lines, refused)
    return Result({**compared.head(), **facts}, show)


def _accept(compared: Compared, chosen: Sequence[Change]) -> list[list[str]]:
    """Writes changes into the schema's file; returns the lines that each adds.

    Raises:
      UsageError: TFDV leaves the feature as it is, the text cannot be edited safely, or
        the file has changed or cannot be written.
    """
    after, added = compared.schema, []
    for change in chosen:
        before, statistics = after, compared.source.statistics.values()
        after = accept_change(
            before, change.kind, change.feature, statistics, [*change.values]
        )
        if change.kind == "new_feature":
            sensitive = {change.feature} & set(compared.config.sensitive)
            after = without_values(after, sensitive)
        if after == before:
            raise UsageError(
                f"{change.id} cannot be accepted: TFDV proposes no other schema for it",
                hint=f"edit {compared.path} by hand",
            )
        old, new = (schema_text(item).split("\n") for item in (before, after))
        lines = [*difflib.unified_diff(old, new, n=0, lineterm="")][2:]
        added.append([line[1:] for line in lines if line[0] == "+"])
    if chosen:
        path = compared.path.resolve()
        text = edit_text(compared.text, compared.schema, after, path)
        if loader.read_text(path) != compared.text:
            raise UsageError(
                "the schema was changed in the meantime; nothing was written",
                where=path,
                hint="run the command again",
            )
        write_output(path, text, "schema")
    return added


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
        replace(change, values={x: change.values[x] for x in wanted[change.id]})
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
        examples=difflib.get_close_matches(wanted, known, n=1) or known,
    )


def _print_diff(compared: Compared, accept_command: Callable[[str], str]) -> None:
    """Prints the differences and their ids."""
    console = make_console()
    splits, changes = compared.source.splits, compared.changes
    path, here = compared.path, Path.cwd()
    for fact in (
        f"schema  {path.relative_to(here) if path.is_relative_to(here) else path}",
        f"data    {compared.source.text}",
        f"        {sum(splits.values()):,} records, splits: {', '.join(splits)}",
    ):
        say(console, fact, "dim")
    for change in changes:
        line = plain(f"{change.feature}: {change.text}")
        line.append_text(plain(f"  [{change.id}]", "dim"))
        console.print(line, soft_wrap=True)
        if change.refusal:
            say(console, f"  cannot be accepted: {change.refusal}", "dim")
    if not changes:
        say(console, "no difference")
    possible = [change.id for change in changes if not change.refusal]
    if possible:
        command = accept_command(possible[0] if len(possible) == 1 else "CHANGE...")
        say(console)
        say(console, f"if the data is right: {command}", "dim")


def _print_accepted(
    compared: Compared,
    chosen: Sequence[Change],
    lines: Sequence[Sequence[str]],
    refused: Sequence[Change],
) -> None:
    console = make_console()
    for change, added in zip(chosen, lines, strict=True):
        say(console, f"accepted {change.id}")
        for line in filter(str.strip, added):
            say(console, f"  + {line.strip()}", "green")
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
