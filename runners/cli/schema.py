"""``sluice schema infer|show|diff|accept``: the reviewed schema and the data."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from pipeline.config.config import Config
from pipeline.scaffold.infer_schema import infer_schema
from runners.cli.echo import echo
from runners.cli.options import Result, config_argument, json_result
from runners.cli.rich_console import make_console, make_table, say
from runners.cli.schema_diff import accept, diff
from runners.operations.compare_schema import from_data
from schemas.loader import feature_names, load
from schemas.schema_text import schema_text
from schemas.show_schema import show_schema
from sluice.errors import DataError, UsageError
from sluice.storage.output_path import resolve_output_path, write_output


@click.group()
def schema() -> None:
    """The reviewed schema of a pipeline, compared with data."""


schema.add_command(diff)
schema.add_command(accept)


@schema.command(short_help="Show the reviewed schema as a table.")
@config_argument
@json_result
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


@schema.command(short_help="Print a schema inferred from the current data.")
@config_argument
@click.option(
    "--examples", metavar="PATTERN", help="Use these files instead of the config's."
)
@click.option(
    "-o", "--output", metavar="FILE", help="Write to FILE, which must not exist."
)
@json_result
def infer(config: Config, examples: str | None, output: str | None) -> Result:
    """Print a schema inferred by TFDV from all records of the pipeline NAME.

    The reviewed schema is not changed, and values of sensitive features are left out.
    """
    path = resolve_output_path(output, Path.cwd(), "--output") if output else None
    if path is not None and path.exists():
        hint = "to change a reviewed schema, use sluice schema accept"
        raise UsageError("the file exists", where=path, hint=hint)
    source = from_data(config, examples, as_one=True)
    records = sum(source.splits.values())
    if not records:
        raise DataError(
            "there are no records to infer a schema from", actual=source.text
        )
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
