"""What ``sluice schema`` looks at: a run's statistics, or the records themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.tfrecord_gen.checking.scan import scan
from pipeline.config.config import Config
from pipeline.graph.check_inputs import check_inputs
from pipeline.scaffold.find_examples import find_examples
from pipeline.scaffold.observe_summary import observe_summary
from pipeline.scaffold.summarize import Summary, summarize
from runners.cli.say import say_warning
from runners.cli.schema_command import run_command
from runners.local.complete_runs import complete_killed_runs
from runners.operations.find_run import find_run, find_workspace, readable_runs
from schemas.diff.diff_schema import Expectations
from schemas.diff.observed import Observed
from schemas.diff.statistics import observe_statistics, read_statistics
from sluice.errors import UsageError
from sluice.record.run_record import RunRecord
from sluice.records.record_error import RecordError

_NODE, _OUTPUT = "StatisticsGen", "statistics"
# The records of files without splits, before they are hashed into some.
_HASHED = "all"


@dataclass(frozen=True)
class Source:
    """Observed data, and where it was observed.

    Attributes:
      observed: what it shows.
      text: where, for a line.
      facts: where, for ``--json``.
    """

    observed: Observed
    text: str
    facts: dict[str, Any]


def from_run(name: str, workspace_dir: str | None, run_id: str | None) -> Source:
    """Returns what the statistics of a run show; by default of the last with some.

    Raises:
      UsageError: there is no such run, or it has no statistics.
      WorkspaceError: the statistics are damaged.
    """
    workspace = find_workspace(name, workspace_dir)
    complete_killed_runs(workspace)
    records: Iterable[RunRecord] = readable_runs(workspace, say_warning)
    if run_id:
        records = [find_run(name, workspace=workspace, run_id=run_id).record]
    for record in records:
        directory = _statistics(record)
        if directory is not None:
            observed = observe_statistics(read_statistics(directory))
            text = f"run {record.run_id} of {record.started_at[:10]}"
            facts = {"kind": "run", "run_id": record.run_id, "path": str(directory)}
            return Source(observed, text, facts)
    raise UsageError(
        f"run {run_id} has no statistics"
        if run_id
        else f"no run of {name} has statistics",
        where=workspace.runs,
        hint=f"{run_command(name, '--to', _NODE)}, or look at the records: --data",
    )


def from_data(config: Config) -> Source:
    """Returns what all records of the config's files show, as they are now.

    Raises:
      UsageError: there are no such files, or one cannot be read.
      DataError: no span is complete, or the records are no tf.Examples.
    """
    paths: dict[str, list[str]] = {}
    for file in check_inputs(config).files:
        paths.setdefault(file.split or _HASHED, []).append(file.path)
    counted = {split: _count(items) for split, items in paths.items()}
    observed = observe_summary({split: item[0] for split, item in counted.items()})
    faults = sum(item[1] for item in counted.values())
    facts = {"kind": "data", "path": config.data_uri, "faults": faults}
    text = f"the records in {config.data_uri}{_left_out(faults)}"
    return Source(observed, text, facts)


def summary_of(config: Config, examples: str | None) -> tuple[Summary, str]:
    """Returns the counts over a pattern's files, or over all of the config's.

    Returns:
      The counts, and what was counted, for a line.

    Raises:
      UsageError, DataError: as ``from_data`` does.
    """
    if examples is None:
        where, paths = config.data_uri, [x.path for x in check_inputs(config).files]
    else:
        found = find_examples(examples, None, Path.cwd())
        where, paths = examples, [str(found.path(file)) for file in found.files]
    summary, faults = _count(paths)
    return summary, f"{summary.records:,} records in {where}{_left_out(faults)}"


def _count(paths: Iterable[str]) -> tuple[Summary, int]:
    """Returns the counts over all sound records of some files, and how many are not."""
    faults = 0

    def records() -> Iterator[bytes]:
        nonlocal faults
        for path in paths:
            for item in scan(path):
                if isinstance(item, RecordError):
                    faults += 1
                else:
                    yield item.data

    return summarize(records()), faults


def _left_out(faults: int) -> str:
    return f", {faults:,} damaged left out" if faults else ""


def expectations(config: Config) -> Expectations:
    """Returns what a config says of the features beyond their schema."""
    required = {
        name: "it is an image, which has no stand-in"
        for name, spec in (config.features or {}).items()
        if spec.kind == "image"
    }
    required[config.label.feature] = "it is the label"
    return Expectations(config.sensitive, required)


def _statistics(record: RunRecord) -> Path | None:
    for node in record.nodes:
        if node.id == _NODE:
            for uri in node.outputs.get(_OUTPUT, []):
                if Path(uri).is_dir():
                    return Path(uri)
    return None
