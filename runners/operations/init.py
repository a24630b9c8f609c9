"""Operation: generates a config and a schema from TFRecords."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pipeline.checks.check_config import validate_config
from pipeline.config.load import load_config
from pipeline.scaffold.choose_label import (
    choose_label,
    class_counts,
    positive_class,
    task_of,
)
from pipeline.scaffold.find_splits import find_examples, guess_splits
from pipeline.scaffold.propose import propose
from pipeline.scaffold.sample import read_sample
from sluice.config_section import PipelineName
from sluice.errors import UsageError
from sluice.project import check_names, find_root
from sluice.storage.output_path import write_output


@dataclass(frozen=True)
class Proposed:
    """A config and a schema that were written.

    Attributes:
      facts: the decisions, as ``--json`` prints them.
      sample: what was looked at, in words.
      why_splits: why the splits are as they are.
    """

    facts: dict[str, Any]
    sample: str
    why_splits: str


def init(
    name: str, pattern: str, label: str | None = None, *, is_forced: bool = False
) -> Proposed:
    """Reads the first records of each file, and writes a config and a schema.

    Args:
      name: of the pipeline.
      pattern: TFRecord files, or their directory.
      label: the feature to predict; None to choose one.
      is_forced: whether existing files are overwritten.

    Raises:
      UsageError: the name or the files are wrong, or the config or schema exists.
      DataError: the records cannot be read.
    """
    _check_name(name)
    root = _project_root(Path.cwd())
    config_file = root / "configs" / f"{name}.yaml"
    schema_file = root / "schemas" / name / "schema.pbtxt"
    written = {"config": str(config_file), "schema": str(schema_file)}
    there = [file for file in written.values() if os.path.lexists(file)]
    if there and not is_forced:
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
            "positive": positive_class(chosen),
            "why": why,
        },
        "model": proposal.model,
        "features": [vars(choice) for choice in proposal.features],
        "warnings": warnings,
        **written,
    }
    return Proposed(facts, sample.text, splits.why)


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
