"""``sluice init NAME``: generates a config and a schema from data files."""

from __future__ import annotations

import os
from functools import partial

import click

from runners.cli.echo import echo_warning
from runners.cli.options import Result, verb
from runners.cli.rich_console import make_console, make_table, say
from runners.operations.init import Proposed, init


@verb()
@click.argument("name")
@click.option(
    "pattern",
    "--examples",
    required=True,
    metavar="PATTERN",
    help="TFRecord, Parquet or CSV files, such as 'data/trips/train-*' (quoted), or "
    "their directory, with all subdirectories; may contain {SPAN}, {YYYY}{MM}{DD} and "
    "{VERSION}.",
)
@click.option("label", "--label", metavar="FEATURE", help="The feature to predict.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def command(name: str, pattern: str, label: str | None, force: bool) -> Result:
    """Generate configs/NAME.yaml and schemas/NAME/schema.pbtxt from data.

    Reads the first records of each file, prints each decision with its reason, and
    writes both files, the config with the reasons as comments. They can be run as they
    are, and should be reviewed. Outside a project, the current directory becomes one.
    """
    proposed = init(name, pattern, label, is_forced=force)
    for warning in proposed.facts["warnings"]:
        echo_warning(warning)
    return Result(proposed.facts, partial(_print_proposal, proposed))


def _print_proposal(proposed: Proposed) -> None:
    console, facts = make_console(), proposed.facts
    splits, label = facts["splits"] or {}, facts["label"]
    shown = ", ".join(f"{name} {text}" for name, text in splits.items())
    classes = label["task"].replace("_", " ")
    if label["classes"] is not None:
        classes += f", {label['classes']:,} classes"
    if label["positive"] is not None:
        classes += f", positive: {label['positive']}"
    say(console, f"looked at  {proposed.sample}")
    say(
        console,
        f"splits     {shown or facts['files'] + ' by hash'} ({proposed.why_splits})",
    )
    say(console, f"label      {label['feature']}, {classes} ({label['why']})")
    say(console, f"model      {facts['model']}")
    say(console)
    titles = ("feature", "seen as", "used as", "why")
    table = make_table(*titles, folded=titles)
    for choice in facts["features"]:
        used = choice["spec"]["kind"] if choice["spec"] else "left out"
        seen_as = choice["seen_as"].replace("_", " ")
        cells = (choice["name"], seen_as, used, choice["why"])
        table.add_row(*cells, style="" if choice["spec"] else "dim")
    console.print(table)
    say(console)
    for file in (facts["config"], facts["schema"]):
        say(console, f"wrote {os.path.relpath(file)}")
    name = facts["name"]
    say(console, f"next: sluice validate {name}, then sluice run {name}")
