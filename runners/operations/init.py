"""Operation: generates a config and a schema from TFRecords."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pipeline.config.load import load_config
from pipeline.config.validate import validate_config
from pipeline.scaffold.choose_label import ChosenLabel, LabelCandidate, choose_label
from pipeline.scaffold.config_text import config_text
from pipeline.scaffold.find_examples import ExampleFiles, find_examples
from pipeline.scaffold.guess_splits import guess_splits
from pipeline.scaffold.propose import Proposal, propose
from pipeline.scaffold.sample import Sample
from pipeline.scaffold.schema_text import schema_text
from pipeline.scaffold.summarize import summarize
from pipeline.scaffold.write_proposal import check_absent, write_proposal
from sluice.config_section import PipelineName
from sluice.errors import DataError, UsageError
from sluice.project import check_names, find_root

_SCHEMA_VERSION = 1

# Returns the name of the feature to use as the label.
AskLabel = Callable[[Sequence[LabelCandidate]], str]


@dataclass(frozen=True, kw_only=True)
class InitRequest:
    """The data to generate a config and a schema from.

    Attributes:
      name: of the pipeline.
      pattern: TFRecord files or their directory, relative to the current directory.
      directory: the data directory; ``pattern`` is then relative to it.
      label: the feature to predict; None to choose one.
      force: overwrite existing files.
    """

    name: str
    pattern: str
    directory: str | None = None
    label: str | None = None
    force: bool = False

    def command(self, label: str) -> str:
        """Returns the command line of this request with a label."""
        words = ["sluice", "init", self.name, "--examples", self.pattern]
        words += ["--dir", self.directory] if self.directory else []
        words += ["--force"] if self.force else []
        return shlex.join([*words, "--label", label])


@dataclass(frozen=True)
class Initialized:
    """A proposal with its reasons, and the files that were written."""

    proposal: Proposal
    label: ChosenLabel
    warnings: tuple[str, ...]
    config_file: Path
    schema_file: Path

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        proposal, label = self.proposal, self.label
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
            "warnings": list(self.warnings),
            "config": str(self.config_file),
            "schema": str(self.schema_file),
        }


def init(
    request: InitRequest,
    ask: AskLabel | None = None,
    on_sample: Callable[[int], None] = lambda files: None,
) -> Initialized:
    """Writes configs/NAME.yaml and schemas/NAME/schema.pbtxt, or neither.

    Outside a project, the current directory becomes one.

    Args:
      request: the data to read.
      ask: chooses the label if the records leave it open; None to refuse then.
      on_sample: called with the number of files before records are read.

    Raises:
      UsageError: the name, the pattern or the label is not usable, the files exist
        already, or the proposal is not valid.
      DataError: the records are not tf.Examples, or have no usable feature.
    """
    name = request.name
    _check_name(name)
    root = _project_root(Path.cwd())
    config_file = root / "configs" / f"{name}.yaml"
    schema_file = root / "schemas" / name / "schema.pbtxt"
    if not request.force:
        check_absent(config_file, schema_file)
    examples = find_examples(request.pattern, request.directory, Path.cwd())
    splits = guess_splits(examples)
    sample = Sample([examples.path(file) for file in examples.files])
    on_sample(len(sample.read))
    summary = summarize(sample.records(), lambda: sample.at)
    data_dir = _data_dir(examples, root)

    def suggest(feature: str) -> str | None:
        try:
            propose(name, data_dir, splits, sample, summary, feature)
        except DataError:
            return None
        return request.command(feature)

    label = choose_label(summary, request.label, ask, suggest)
    proposal = propose(name, data_dir, splits, sample, summary, label.name)
    # The config last: it makes the pipeline exist.
    texts = {schema_file: schema_text(proposal), config_file: config_text(proposal)}
    with write_proposal(texts, replace=request.force):
        valid = validate_config(load_config(str(config_file)))
    warnings = (*proposal.warnings, *valid.warnings)
    return Initialized(proposal, label, warnings, config_file, schema_file)


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
