"""``sluice schema infer NAME``: prints a schema for the data."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.config.load import load_config
from pipeline.scaffold.infer_schema import infer_schema
from runners.cli.console import make_console, plain
from runners.cli.options import config_options, json_option
from runners.cli.say import say, say_json
from runners.cli.schema_source import summary_of
from schemas.edit.schema_text import plain_text
from schemas.edit.without_values import without_values
from schemas.loader import feature_names
from sluice.errors import DataError, UsageError
from sluice.storage import atomic
from sluice.storage.destination import destination


@click.command(short_help="Print a schema for the data as it is now.")
@config_options
@click.option("--examples", metavar="PATTERN", help="Of these files, not the config's.")
@click.option("-o", "--output", metavar="FILE", help="Write it there; a new file.")
@json_option
def infer(
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    examples: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Print a schema for the data of the pipeline NAME; the reviewed one stays.

    All records are read.
    """
    config = load_config(name, profile=profile, overrides=overrides)
    path = destination(output, Path.cwd(), "--output") if output else None
    summary, counted = summary_of(config, examples)
    label = config.label.feature if config.label.feature in summary.features else None
    found = without_values(infer_schema(summary, label), config.sensitive)
    if not found.feature:
        raise DataError(
            "there is no record to infer a schema from",
            expected="at least one record with a value",
            actual=counted,
        )
    if config.label.feature not in feature_names(found):
        note = f"note: no record has the label {config.label.feature}"
        say(note, err=True)
    text = plain_text(found)
    console = make_console(to_stderr=as_json)
    if path is not None:
        _write_new(path, text)
        told = f"wrote {output}: {len(found.feature):,} features of {counted}"
        console.print(plain(told), soft_wrap=True)
    elif not as_json:
        say(counted, err=True)
        say(*text.rstrip("\n").split("\n"))
    if as_json:
        document = {
            "schema_version": 1,
            "pipeline": config.name,
            "records": summary.records,
            "text": text,
            "path": output,
        }
        say_json(document)


def _write_new(path: Path, text: str) -> None:
    if path.exists():
        raise UsageError(
            "the file exists; nothing was written",
            where=path,
            hint="give another file with -o; a reviewed schema is changed by "
            "sluice schema accept",
        )
    try:
        atomic.write_text(path, text)
    except OSError as error:
        raise UsageError(
            "the schema cannot be written",
            where=path,
            actual=error.strerror or str(error),
        ) from error
