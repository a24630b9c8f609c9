"""``sluice init NAME``: looks at TFRecords, writes a config and a schema to review."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError
from rich.console import Console
from rich.table import Table

from pipeline.config.load import load_config
from pipeline.config.validate import validate_config
from pipeline.scaffold.choose_label import ChosenLabel, choose_label
from pipeline.scaffold.config_text import config_text
from pipeline.scaffold.find_examples import ExampleFiles, find_examples
from pipeline.scaffold.guess_splits import guess_splits
from pipeline.scaffold.label_candidates import LabelCandidate
from pipeline.scaffold.propose import Proposal, propose
from pipeline.scaffold.sample import Sample
from pipeline.scaffold.schema_text import schema_text
from pipeline.scaffold.summarize import summarize
from pipeline.scaffold.write_proposal import check_absent, write_proposal
from runners.cli.console import make_console, plain
from runners.cli.options import json_option
from runners.cli.say import say, say_json
from sluice.errors import DataError, UsageError
from sluice.printable import printable
from sluice.project import check_names, find_root
from sluice.section import PipelineName

_SCHEMA_VERSION = 1


@click.command()
@click.argument("name")
@click.argument("expanded", nargs=-1, metavar="")
@click.option(
    "pattern",
    "--examples",
    required=True,
    metavar="PATTERN",
    help="TFRecord files, such as 'data/trips/train-*' (quoted), or their directory, "
    "with all that is below it; may hold {SPAN}, {YYYY}{MM}{DD} and {VERSION}.",
)
@click.option(
    "directory",
    "--dir",
    metavar="DIR",
    help="The data's directory; PATTERN is then below it.",
)
@click.option("asked", "--label", metavar="FEATURE", help="What is to be predicted.")
@click.option("--force", is_flag=True, help="Replace the files that are there.")
@json_option
def init(
    name: str,
    expanded: tuple[str, ...],
    pattern: str,
    directory: str | None,
    asked: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Propose configs/NAME.yaml and schemas/NAME/schema.pbtxt from TFRecords.

    Looks at the first records of each file, says what it decided and why, and writes
    both files with the reasons as comments. They run as they are; review them. A
    directory that is in no project becomes one.
    """
    if expanded:
        raise UsageError(
            f"There is more than NAME and options: {expanded[0]}",
            expected="one pattern after --examples",
            actual=f"{len(expanded):,} more words",
            hint="quote the pattern, so that the shell does not expand it",
        )
    _check_name(name)
    cwd = Path.cwd()
    root = _project_root(cwd)
    config_file = root / "configs" / f"{name}.yaml"
    schema_file = root / "schemas" / name / "schema.pbtxt"
    if not force:
        check_absent(config_file, schema_file)
    console = make_console(to_stderr=as_json)
    examples = find_examples(pattern, directory, cwd)
    splits = guess_splits(examples)
    sample = Sample([examples.path(file) for file in examples.files])
    with console.status(f"looking into {len(sample.read):,} of the files"):
        summary = summarize(sample.records(), sample.place)
    ask = _ask if sys.stdin.isatty() and sys.stderr.isatty() else None
    data_dir = _data_dir(examples, root)

    def suggest(feature: str) -> str | None:
        try:
            propose(name, data_dir, splits, sample, summary, feature)
        except DataError:
            return None
        words = ["sluice", "init", name, "--examples", pattern]
        words += ["--dir", directory] if directory else []
        words += ["--force"] if force else []
        return shlex.join([*words, "--label", feature])

    label = choose_label(summary, asked, ask, suggest)
    proposal = propose(name, data_dir, splits, sample, summary, label.name)
    # The config last: with it the pipeline is there.
    texts = {schema_file: schema_text(proposal), config_file: config_text(proposal)}
    with write_proposal(texts, replace=force):
        valid = validate_config(load_config(str(config_file)))
    warnings = [*proposal.warnings, *valid.warnings]
    _show(console, proposal, label, warnings)
    for file in (config_file, schema_file):
        console.print(plain(f"wrote {os.path.relpath(file, cwd)}"))
    console.print(plain(f"next: sluice validate {name}, then sluice run {name}"))
    if as_json:
        files = {"config": str(config_file), "schema": str(schema_file)}
        say_json({**_as_json(proposal, label, warnings), **files})


def _check_name(name: str) -> None:
    try:
        TypeAdapter(PipelineName).validate_python(name)
    except ValidationError as error:
        near = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        raise UsageError(
            f"{name!r} cannot be the name of a pipeline.",
            expected=error.errors()[0]["msg"].removeprefix("Input should be "),
            hint=f"sluice init {near} ..." if near else None,
        ) from error


def _project_root(cwd: Path) -> Path:
    """Returns the project that this is in; the directory itself becomes one if none."""
    try:
        root = find_root(cwd)
    except UsageError:
        root = cwd
    check_names(root)
    return root


def _data_dir(examples: ExampleFiles, root: Path) -> str:
    """Returns the data's directory as a config has it: from the root, or absolute."""
    for top in (root, root.resolve()):
        if examples.directory.is_relative_to(top):
            return examples.directory.relative_to(top).as_posix()
    return str(examples.directory)


def _ask(candidates: Sequence[LabelCandidate]) -> str:
    say("Which feature is to be predicted?", err=True)
    for candidate in candidates:
        reasons = candidate.reasons or (f"it has {candidate.classes:,} values",)
        say(f"  {candidate.name}: {', '.join(reasons)}", err=True)
    names = [candidate.name for candidate in candidates]
    return click.prompt(
        f"label [{printable(names[0])}]",
        default=names[0],
        type=click.Choice(names),
        show_choices=False,
        show_default=False,
        err=True,
    )


def _show(
    console: Console, proposal: Proposal, label: ChosenLabel, warnings: list[str]
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


def _as_json(
    proposal: Proposal, label: ChosenLabel, warnings: list[str]
) -> dict[str, Any]:
    return {
        "schema_version": _SCHEMA_VERSION,
        "name": proposal.name,
        "records": proposal.summary.records,
        "complete": proposal.complete,
        "splits": dict(proposal.splits.splits) or None,
        "files": proposal.splits.files,
        "split_by": proposal.split_by,
        "label": {
            "feature": label.name,
            "classes": proposal.label.classes,
            "why": label.why,
        },
        "model": proposal.model,
        "features": [
            {
                "name": choice.name,
                "seen_as": choice.semantic_type.name,
                "spec": None if choice.spec is None else dict(choice.spec),
                "why": choice.why,
            }
            for choice in proposal.features
        ],
        "warnings": warnings,
    }
