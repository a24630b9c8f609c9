"""``sluice init NAME``: generates a config and a schema from TFRecords."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError

from pipeline.config.load import load_config
from pipeline.config.validate import validate_config
from pipeline.scaffold.choose_label import ChosenLabel, choose_label
from pipeline.scaffold.config_text import config_text
from pipeline.scaffold.find_examples import ExampleFiles, find_examples
from pipeline.scaffold.guess_splits import guess_splits
from pipeline.scaffold.propose import Proposal, propose
from pipeline.scaffold.sample import Sample
from pipeline.scaffold.schema_text import schema_text
from pipeline.scaffold.summarize import summarize
from pipeline.scaffold.write_proposal import check_absent, write_proposal
from runners.cli.echo import echo_warning
from runners.cli.options import Result, json_result
from runners.cli.rich_console import make_console, make_table, plain, say
from sluice.config_section import PipelineName
from sluice.errors import DataError, UsageError
from sluice.project import check_names, find_root


@click.command()
@click.argument("name")
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
@json_result
def init(
    name: str, pattern: str, directory: str | None, label: str | None, force: bool
) -> Result:
    """Generate configs/NAME.yaml and schemas/NAME/schema.pbtxt from TFRecords.

    Reads the first records of each file, prints each decision with its reason, and
    writes both files with the reasons as comments. They can be run as they are, and
    should be reviewed. Outside a project, the current directory becomes one.
    """
    _check_name(name)
    root = _project_root(Path.cwd())
    config_file = root / "configs" / f"{name}.yaml"
    schema_file = root / "schemas" / name / "schema.pbtxt"
    if not force:
        check_absent(config_file, schema_file)
    examples = find_examples(pattern, directory, Path.cwd())
    splits = guess_splits(examples)
    sample = Sample([examples.path(file) for file in examples.files])
    summary = summarize(sample.records(), lambda: sample.at)
    data_dir = _data_dir(examples, root)

    def command_with(feature: str) -> str | None:
        """Returns the command with a label; None if it cannot be the label."""
        try:
            propose(name, data_dir, splits, sample, summary, feature)
        except DataError:
            return None
        words = ["sluice", "init", name, "--examples", pattern]
        words += ["--dir", directory] if directory else []
        words += ["--force"] if force else []
        return shlex.join([*words, "--label", feature])

    chosen = choose_label(summary, label, command_with)
    proposal = propose(name, data_dir, splits, sample, summary, chosen.name)
    # The config last: it makes the pipeline exist.
    texts = {schema_file: schema_text(proposal), config_file: config_text(proposal)}
    with write_proposal(texts, replace=force):
        valid = validate_config(load_config(str(config_file)))
    warnings = [*proposal.warnings, *valid.warnings]
    for warning in warnings:
        echo_warning(warning)
    written = {"config": str(config_file), "schema": str(schema_file)}
    facts = {**_facts(proposal, chosen), "warnings": warnings, **written}
    return Result(facts, partial(_print_proposal, proposal, chosen, written.values()))


def _check_name(name: str) -> None:
    try:
        TypeAdapter(PipelineName).validate_python(name)
    except ValidationError as error:
        near = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        raise UsageError(
            f"{name!r} is not a valid pipeline name",
            expected=error.errors()[0]["msg"].removeprefix("Input should be "),
            hint=f"sluice init {near} ..." if near else None,
        ) from error


def _project_root(cwd: Path) -> Path:
    """Returns the root of the project around a directory, or the directory itself."""
    try:
        root = find_root(cwd)
    except UsageError:
        root = cwd
    check_names(root)
    return root


def _data_dir(examples: ExampleFiles, root: Path) -> str:
    """Returns the data directory for the config: relative to the root, or absolute."""
    for top in (root, root.resolve()):
        if examples.directory.is_relative_to(top):
            return examples.directory.relative_to(top).as_posix()
    return str(examples.directory)


def _facts(proposal: Proposal, label: ChosenLabel) -> dict[str, Any]:
    features = [
        {
            "name": choice.name,
            "seen_as": choice.semantic_type.name,
            "spec": None if choice.spec is None else dict(choice.spec),
            "why": choice.why,
        }
        for choice in proposal.features
    ]
    return {
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
        "features": features,
    }


def _print_proposal(
    proposal: Proposal, label: ChosenLabel, written: Iterable[str]
) -> None:
    console = make_console()
    splits, classes = proposal.splits, proposal.label.classes
    if splits.files is None:
        shown = ", ".join(f"{name} {text}" for name, text in splits.splits.items())
    else:
        by = f" of {proposal.split_by}" if proposal.split_by else ""
        shown = f"{splits.files} by hash{by}, 8 : 1 : 1"
    say(console, f"looked at  {proposal.sampled}")
    say(console, f"splits     {shown} ({splits.why})")
    say(console, f"label      {label.name}, {classes:,} classes ({label.why})")
    say(console, f"model      {proposal.model}")
    say(console)
    titles = ("feature", "seen as", "used as", "why")
    table = make_table(*titles, folded=titles)
    for choice in proposal.features:
        style = "" if choice.spec else "dim"
        used = str(choice.spec["kind"]) if choice.spec else "left out"
        seen_as = choice.semantic_type.name.replace("_", " ")
        row = (choice.name, seen_as, used, choice.why)
        table.add_row(*(plain(cell, style) for cell in row))
    console.print(table)
    say(console)
    for file in written:
        say(console, f"wrote {os.path.relpath(file)}")
    name = proposal.name
    say(console, f"next: sluice validate {name}, then sluice run {name}")
