"""Source of a schema comparison: a run's statistics, or the records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.tfrecord_gen.checking.scan import scan
from pipeline.config.config import Config
from pipeline.graph.choose_spans import choose_data
from pipeline.graph.node_registry import STATISTICS
from pipeline.scaffold.find_examples import find_examples
from pipeline.scaffold.summarize import Summary, observe_summary, summarize
from runners.operations.complete_killed_runs import complete_killed_runs
from runners.operations.find_run import (
    Warn,
    find_run,
    find_workspace,
    ignore,
    readable_runs,
)
from runners.operations.pipeline_request import PipelineRequest
from schemas.diff.observed_data import ObservedData
from schemas.diff.statistics import observe_statistics, read_statistics
from sluice.errors import UsageError
from sluice.record.run_record import RunRecord
from sluice.tfrecords.record_error import RecordError

_OUTPUT = "statistics"
# The records of files without splits, before they are hashed into some.
_HASHED = "all"


@dataclass(frozen=True, kw_only=True)
class SchemaRequest(PipelineRequest):
    """Which data the reviewed schema is compared with.

    Attributes:
      run_id: the statistics of this run; None for the last that has some.
      data: count all records of the config's files instead, as they are now.
    """

    run_id: str | None = None
    data: bool = False

    def schema_command(self, verb: str, *changes: str) -> str:
        """Returns ``sluice schema VERB`` of the same config and data."""
        source = ["--data"] * self.data
        source += ["--run", self.run_id] if self.run_id else []
        words = [self.name, *changes, *self.same_config(), *source]
        return self.next_command("schema", verb, *words)

    def run_command(self, *options: str) -> str:
        """Returns ``sluice run`` of the same config."""
        return self.next_command("run", self.name, *self.same_config(), *options)


@dataclass(frozen=True)
class Source:
    """ObservedData data, and where it was observed.

    ``text`` says where, for a line; ``facts``, for ``--json``.
    """

    observed: ObservedData
    text: str
    facts: dict[str, Any]


def from_run(request: SchemaRequest, warn: Warn = ignore) -> Source:
    """Returns what the statistics of a run show; by default of the last with some.

    Raises:
      UsageError: there is no such run, or it has no statistics.
      WorkspaceError: the statistics are damaged.
    """
    name, run_id = request.name, request.run_id
    workspace = find_workspace(name, request.workspace_dir)
    complete_killed_runs(workspace)
    records: Iterable[RunRecord] = readable_runs(workspace, warn)
    if run_id:
        found = find_run(
            name, request.workspace_dir, workspace=workspace, run_id=run_id
        )
        records = [found.record]
    for record in records:
        for uri in _statistics_uris(record):
            if (statistics := read_statistics(uri)) is None:
                continue
            text = f"run {record.run_id} of {record.started_at[:10]}"
            facts = {"kind": "run", "run_id": record.run_id, "path": uri}
            return Source(observe_statistics(statistics), text, facts)
    raise UsageError(
        f"run {run_id} has no statistics"
        if run_id
        else f"no run of {name} has statistics",
        where=workspace.runs,
        hint=f"{request.run_command('--to', STATISTICS)}, or read the records: --data",
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
