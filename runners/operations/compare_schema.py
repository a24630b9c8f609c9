"""Compares the reviewed schema of a pipeline with the data of a run, or of now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.tfrecord_gen.checking.scan import scan
from pipeline.config.config import Config
from pipeline.config.expectations import expectations
from pipeline.graph.choose_spans import choose_data
from pipeline.graph.node_registry import STATISTICS
from pipeline.scaffold.find_examples import find_examples
from pipeline.scaffold.summarize import Summary, observe_summary, summarize
from runners.operations.find_run import find_run, readable_runs, update_records
from runners.operations.pipeline_request import (
    config_words,
    next_command,
    workspace_of,
)
from schemas.diff.diff_schema import Diff, diff_schema
from schemas.diff.observed_data import ObservedData
from schemas.diff.statistics import observe_statistics, read_statistics
from schemas.edit.edit_schema import read_schema_text
from schemas.loader import load
from sluice.errors import DataError, UsageError
from sluice.record.run_record import RunRecord
from sluice.tfrecords.frame_reader import RecordError

_OUTPUT = "statistics"
# The records of files without splits, before they are hashed into some.
_HASHED = "all"


@dataclass(frozen=True)
class Source:
    """Observed data, and where it was observed.

    ``text`` says where, for a line; ``facts``, for ``--json``.
    """

    observed: ObservedData
    text: str
    facts: dict[str, Any]


@dataclass(frozen=True)
class Compared:
    """The differences between a schema's file, with its text, and data."""

    config: Config
    path: Path
    text: str
    source: Source
    diff: Diff

    def head(self) -> dict[str, Any]:
        """Returns the JSON form of the two sides."""
        return {
            "pipeline": self.config.name,
            "schema": str(self.path),
            "source": {**self.source.facts, "splits": self.source.observed.splits},
        }


def compare_schema(
    config: Config, *, run_id: str | None = None, data: bool = False
) -> Compared:
    """Returns the differences between the reviewed schema and data.

    Args:
      config: of the pipeline.
      run_id: compare with the statistics of this run; None for the last with some.
      data: count all records of the config's files instead, as they are now.

    Raises:
      UsageError: the schema is invalid, or there is no such data.
      DataError: there are no records.
      WorkspaceError: the run's statistics are damaged.
    """
    if run_id and data:
        raise UsageError("--run and --data exclude each other")
    path = config.schema_path
    text = read_schema_text(path) if path.is_file() else ""
    reviewed = load(path)
    source = from_data(config) if data else from_run(config, run_id)
    if not source.observed.records:
        raise DataError(
            "there are no records to compare the schema with",
            where=source.text,
            hint=next_command("run", *config_words(config)),
        )
    found = diff_schema(reviewed, source.observed, expectations(config))
    return Compared(config, path, text, source, found)


def from_run(config: Config, run_id: str | None = None) -> Source:
    """Returns what the statistics of a run show; by default of the last with some.

    Raises:
      UsageError: there is no such run, or it has no statistics.
      WorkspaceError: the statistics are damaged.
    """
    name, workspace = config.name, workspace_of(config)
    update_records(workspace)
    records: Iterable[RunRecord] = readable_runs(workspace)
    if run_id:
        records = [find_run(name, run_id, workspace).record]
    for record in records:
        for uri in _statistics_uris(record):
            if (statistics := read_statistics(uri)) is None:
                continue
            text = f"run {record.run_id} of {record.started_at[:10]}"
            facts = {"kind": "run", "run_id": record.run_id, "path": uri}
            return Source(observe_statistics(statistics), text, facts)
    run = next_command("run", *config_words(config), "--to", STATISTICS)
    raise UsageError(
        f"run {run_id} has no statistics"
        if run_id
        else f"no run of {name} has statistics",
        where=workspace.runs,
        hint=f"{run}, or read the records: --data",
    )


def from_data(config: Config) -> Source:
    """Returns what all records of the config's files show, as they are now.

    Raises:
      UsageError: there are no such files, or one cannot be read.
      DataError: no span is complete, or the records are no tf.Examples.
    """
    paths: dict[str, list[str]] = {}
    for file in choose_data(config).files:
        paths.setdefault(file.split or _HASHED, []).append(file.path)
    counted = {split: _count(items) for split, items in paths.items()}
    observed = observe_summary({split: item[0] for split, item in counted.items()})
    damaged = sum(item[1] for item in counted.values())
    facts = {"kind": "data", "path": config.data_uri, "faults": damaged}
    text = f"the records in {config.data_uri}{_left_out(damaged)}"
    return Source(observed, text, facts)


def summary_of(config: Config, examples: str | None) -> tuple[Summary, str]:
    """Returns the counts over a pattern's files, or over all of the config's.

    Returns:
      The counts, and what was counted, for a line.

    Raises:
      UsageError, DataError: as ``from_data`` does.
    """
    if examples is None:
        where, paths = config.data_uri, [x.path for x in choose_data(config).files]
    else:
        found = find_examples(examples, None, Path.cwd())
        where, paths = examples, [str(found.path(file)) for file in found.files]
    summary, damaged = _count(paths)
    return summary, f"{summary.records:,} records in {where}{_left_out(damaged)}"


def _count(paths: Iterable[str]) -> tuple[Summary, int]:
    """Returns the counts over all sound records of some files, and how many are not."""
    damaged = 0

    def records() -> Iterator[bytes]:
        nonlocal damaged
        for path in paths:
            for item in scan(path):
                if isinstance(item, RecordError):
                    damaged += 1
                else:
                    yield item.data

    return summarize(records()), damaged


def _left_out(damaged: int) -> str:
    return f", {damaged:,} damaged left out" if damaged else ""


def _statistics_uris(record: RunRecord) -> list[str]:
    return [
        uri
        for node in record.nodes
        if node.id == STATISTICS
        for uri in node.outputs.get(_OUTPUT, [])
    ]
