"""``sluice init NAME``: generates a config and a schema from TFRecords."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError

from pipeline.config.load import load_config
from pipeline.config.validate import validate_config
from pipeline.scaffold.choose_label import choose_label, class_counts, task_of
from pipeline.scaffold.find_splits import find_examples, guess_splits
from pipeline.scaffold.propose import propose
from pipeline.scaffold.sample import read_sample
from runners.cli.echo import echo_warning
from runners.cli.options import Result, verb
from runners.cli.rich_console import make_console, make_table, say
from sluice.config_section import PipelineName
from sluice.errors import UsageError
from sluice.project import check_names, find_root
from sluice.storage.output_path import write_output


@verb()
@click.argument("name")
@click.option(
    "pattern",
    "--examples",
    required=True,
    metavar="PATTERN",
    help="TFRecord files, such as 'data/trips/train-*' (quoted), or their directory, "
    "with all subdirectories; may contain {SPAN}, {YYYY}{MM}{DD} and {VERSION}.",
)
@click.option("label", "--label", metavar="FEATURE", help="The feature to predict.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def command(name: str, pattern: str, label: str | None, force: bool) -> Result:
    """Generate configs/NAME.yaml and schemas/NAME/schema.pbtxt from TFRecords.

    Reads the first records of each file, prints each decision with its reason, and
    writes both files, the config with the reasons as comments. They can be run as they
    are, and should be reviewed. Outside a project, the current directory becomes one.
    """
    _check_name(name)
    root = _project_root(Path.cwd())
    config_file = root / "configs" / f"{name}.yaml"
    schema_file = root / "schemas" / name / "schema.pbtxt"
    written = {"config": str(config_file), "schema": str(schema_file)}
    there = [file for file in written.values() if os.path.lexists(file)]
    if there and not force:
        raise UsageError(
            "the config or schema already exists",
            examples=there,
            hint="choose another NAME, or use --force to overwrite config and schema",
        )
    examples = find_examples(pattern, Path.cwd())
    splits = guess_splits(examples)
    sample = read_sample([examples.directory / file for file in examples.files])
    chosen, why = choose_label(sample, label)
    folder = examples.directory
    data_dir = folder.relative_to(root) if folder.is_relative_to(root) else folder
    proposal = propose(name, str(data_dir), splits, sample, (chosen, why))
    # The config last: it makes the pipeline exist.
    for file, text in (
        (schema_file, proposal.schema_text),
        (config_file, proposal.config_text),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_output(file, text, "proposal")
    warnings = [*proposal.warnings]
    if any(choice.spec for choice in proposal.features):
        warnings += validate_config(load_config(str(config_file))).warnings
    for warning in warnings:
        echo_warning(warning)
    is_number = task_of(chosen) == "regression"
    facts = {
        "name": name,
        "records": sample.records,
        "splits": dict(splits.splits) or None,
        "files": splits.files,
        "label": {
            "feature": chosen.name,
            "task": task_of(chosen),
            "classes": None if is_number else len(class_counts(chosen)),
            "why": why,
        },
        "model": proposal.model,
        "features": [vars(choice) for choice in proposal.features],
        "warnings": warnings,
        **written,
    }
    return Result(facts, partial(_print_proposal, facts, sample.text, splits.why))


def _check_name(name: str) -> None:
    try:
        TypeAdapter(PipelineName).validate_python(name)
    except ValidationError as error:
        raise UsageError(
            f"{name!r} is not a valid pipeline name: {error.errors()[0]['msg']}"
        ) from error


def _project_root(cwd: Path) -> Path:
    """Returns the root of the project around a directory, or the directory itself."""
    try:
        root = find_root(cwd)
    except UsageError:
        root = cwd
    check_names(root)
    return root


def _print_proposal(facts: dict[str, Any], sample: str, why_splits: str) -> None:
    console = make_console()
    splits, label = facts["splits"] or {}, facts["label"]
    shown = ", ".join(f"{name} {text}" for name, text in splits.items())
    classes = label["task"].replace("_", " ")
    if label["classes"] is not None:
        classes += f", {label['classes']:,} classes"
    say(console, f"looked at  {sample}")
    say(console, f"splits     {shown or facts['files'] + ' by hash'} ({why_splits})")
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
