"""Retention policy: which runs, artifacts and executions are kept.

Kept are the newest runs, the runs of the served versions, the last complete run, all
artifacts that these read or wrote with everything upstream, and the next run's
baseline. Pure: no file is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from components.baseline_model.blessed_models import BlessedModel
from runners.metadata.metadata_graph import MetadataGraph
from runners.metadata.served_models import ServedModel
from sluice.record.run_record import RunRecord

_COMPLETE = ("succeeded", "up_to_date")


@dataclass(frozen=True)
class Kept:
    """The ids of the runs, artifacts and executions to keep."""

    runs: frozenset[str]
    artifacts: frozenset[int]
    executions: frozenset[int]


def select_kept(
    graph: MetadataGraph,
    records: Mapping[str, RunRecord | None],
    served: Sequence[ServedModel],
    baselines: Iterable[BlessedModel],
    keep: int,
) -> Kept:
    """Selects the runs, artifacts and executions to keep.

    Args:
      graph: the pipeline's metadata.
      records: the record of each run that has a folder; None if it is unreadable.
      served: the versions on disk.
      baselines: the blessed models down to the next run's baseline; a damaged one is
        kept, since the gate must not pass while it is lost.
      keep: the number of newest runs to keep, not counting those that were up to date.
    """
    newest = _newest(graph.run_ids | set(records), records, keep)
    runs = {*newest, *_last_complete(graph, records), *_runs_of(graph, served)}
    executions = graph.executions_of(runs)
    artifacts, made_by = graph.upstream(
        {
            *(item for execution in executions for item in execution.touched()),
            *_named_by(graph, [records.get(run_id) for run_id in runs]),
            *(item.model_id for item in served if item.model_id is not None),
        }
    )
    proofs = {
        artifact
        for item in baselines
        if item.retired is None
        for artifact in (item.model.id, item.blessing_id)
    }
    return Kept(
        frozenset(runs),
        frozenset({*artifacts, *proofs}),
        frozenset({*made_by, *(execution.id for execution in executions)}),
    )


def _newest(
    run_ids: Iterable[str], records: Mapping[str, RunRecord | None], keep: int
) -> list[str]:
    """Returns the newest runs, and open ones; those that were up to date do not count.

    Otherwise scheduled runs without changes would displace a resumable one. A service
    may run an older one still.
    """
    ordered = sorted(run_ids)
    counted = [run_id for run_id in ordered if not _is_idle(records.get(run_id))]
    oldest = "" if len(counted) <= keep else counted[-keep]
    return [
        run_id
        for run_id in ordered
        if run_id >= oldest or _is_open(records.get(run_id))
    ]


def _is_idle(record: RunRecord | None) -> bool:
    return record is not None and record.status == "up_to_date"


def _is_open(record: RunRecord | None) -> bool:
    return record is not None and record.status == "running"


def is_complete(record: RunRecord | None) -> bool:
    """Whether a run has succeeded or was up to date."""
    return record is not None and record.status in _COMPLETE


def _last_complete(
    graph: MetadataGraph, records: Mapping[str, RunRecord | None]
) -> list[str]:
    """Returns the newest complete run with executions in ML Metadata, if any."""
    complete = [run_id for run_id in records if is_complete(records[run_id])]
    return sorted(graph.run_ids.intersection(complete))[-1:]


def _runs_of(graph: MetadataGraph, served: Iterable[ServedModel]) -> Iterator[str]:
    """Yields the runs that pushed the versions, and those that trained the models."""
    for item in served:
        if item.run_id is not None:
            yield item.run_id
        if item.model_id is not None and (maker := graph.producer(item.model_id)):
            yield from maker.run_ids


def _named_by(
    graph: MetadataGraph, records: Iterable[RunRecord | None]
) -> Iterator[int]:
    """Yields the artifacts in records of runs, which may have no executions."""
    uris: set[str] = set()
    for record in records:
        for node in record.nodes if record else ():
            for links in (node.inputs, node.outputs):
                uris.update(uri for values in links.values() for uri in values)
        uris.update(record.artifacts if record else ())
    yield from (item.id for item in graph.artifacts.values() if item.uri in uris)
