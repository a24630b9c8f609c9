"""``sluice init NAME``: generates a config and a schema from TFRecords."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from pipeline.scaffold.choose_label import ChosenLabel, LabelCandidate
from pipeline.scaffold.propose import Proposal
from runners.cli.echo import echo, echo_json
from runners.cli.options import json_option
from runners.cli.rich_console import make_console, plain
from runners.operations import init as operation
from sluice.errors import UsageError
from sluice.printable import printable


@click.command()
@click.argument("name")
@click.argument("expanded", nargs=-1, metavar="")
@click.option(
    "pattern",
    "--examples",
    required=True,
    metavar="PATTERN",
    help="TFRecord files, such as 'data/trips/train-*' (quoted), or their directory, "
    "with all subdirectories; may contain {SPAN}, {YYYY}{MM}{DD} and {VERSION}.",
)
@click.option(
    "directory",
    "--dir",
    metavar="DIR",
    help="The data directory; PATTERN is relative to it.",
)
@click.option("label", "--label", metavar="FEATURE", help="The feature to predict.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@json_option
def init(expanded: tuple[str, ...], as_json: bool, **asked: Any) -> None:
    """Generate configs/NAME.yaml and schemas/NAME/schema.pbtxt from TFRecords.

    Reads the first records of each file, prints each decision with its reason, and
    writes both files with the reasons as comments. They can be run as they are, and
    should be reviewed. Outside a project, the current directory becomes one.
    """
    if expanded:
        raise UsageError(
            f"unexpected argument: {expanded[0]}",
            expected="one pattern after --examples",
            actual=f"{len(expanded):,} more arguments",
            hint="quote the pattern, so that the shell does not expand it",
        )
    request = operation.InitRequest(**asked)
    console = make_console(to_stderr=as_json)
    with console.status("looking for files") as shown:

        def on_sample(files: int) -> None:
            shown.update(f"reading records of {files:,} files")

        def ask(candidates: Sequence[LabelCandidate]) -> str:
            shown.stop()
            return _prompt_for_label(candidates)

        is_terminal = sys.stdin.isatty() and sys.stderr.isatty()
        done = operation.init(request, ask if is_terminal else None, on_sample)
    _print_proposal(console, done.proposal, done.label, done.warnings)
    for file in (done.config_file, done.schema_file):
        console.print(plain(f"wrote {os.path.relpath(file)}"))
    name = request.name
    console.print(plain(f"next: sluice validate {name}, then sluice run {name}"))
    if as_json:
        echo_json(done.to_dict())


def _prompt_for_label(candidates: Sequence[LabelCandidate]) -> str:
    echo("Which feature should the model predict?", err=True)
    for candidate in candidates:
        reasons = candidate.reasons or (f"it has {candidate.classes:,} values",)
        echo(f"  {candidate.name}: {', '.join(reasons)}", err=True)
    names = [candidate.name for candidate in candidates]
    return click.prompt(
        f"label [{printable(names[0])}]",
        default=names[0],
        type=click.Choice(names),
        show_choices=False,
        show_default=False,
        err=True,
    )


def _print_proposal(
    console: Console, proposal: Proposal, label: ChosenLabel, warnings: Sequence[str]
) -> None:
    splits, classes = proposal.splits, proposal.label.classes
    if splits.files is None:
        shown = ", ".join(f"{name} {text}" for name, text in splits.splits.items())
    else:
        by = f" of {proposal.split_by}" if proposal.split_by else ""
        shown = f"{splits.files} by hash{by}, 8 : 1 : 1"
    for line in (
        f"looked at  {proposal.sampled}",
        f"splits     {shown} ({splits.why})",
        f"label      {label.name}, {classes:,} classes ({label.why})",
        f"model      {proposal.model}",
        "",
    ):
        console.print(plain(line))
    table = Table(box=None, pad_edge=False)
    for title in ("feature", "seen as", "used as", "why"):
        table.add_column(title, overflow="fold")
    for choice in proposal.features:
        style = "" if choice.spec else "dim"
        used = str(choice.spec["kind"]) if choice.spec else "left out"
        seen_as = choice.semantic_type.name.replace("_", " ")
        row = (choice.name, seen_as, used, choice.why)
        table.add_row(*(plain(cell, style) for cell in row))
    console.print(table)
    console.print()
    for warning in warnings:
        console.print(plain(f"warning: {warning}", "yellow"))
