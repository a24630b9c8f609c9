"""Retention policy: which runs, artifacts and executions are kept.

Kept are the newest runs, the runs of the served versions, the last complete run, all
artifacts that these read or wrote with everything upstream, and the next run's
baseline. Pure: no file is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from components.baseline_model.blessed_models import BlessedModel
from runners.metadata.graph import MetadataGraph, ids_in
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
    records: Mapping[str, RunRecord],
    served: Sequence[ServedModel],
    baselines: Iterable[BlessedModel],
    keep: int,
) -> Kept:
    """Selects the runs, artifacts and executions to keep.

    Args:
      graph: the pipeline's metadata.
      records: the record of each run, without those that cannot be read.
      served: the versions on disk.
      baselines: the blessed models down to the next run's baseline, without retired
        ones; a damaged one is kept, since the gate must not pass while it is lost.
      keep: the number of newest runs to keep, not counting those that were up to date.
    """
    status = {run_id: record.status for run_id, record in records.items()}
    complete = [run_id for run_id in records if status[run_id] in _COMPLETE]
    ran = {item.run_id for item in graph.executions.values() if item.run_id}
    runs = {
        *_newest(sorted(ran | set(records)), status, keep),
        *sorted(ran.intersection(complete))[-1:],
        *_runs_of(graph, served),
    }
    executions = graph.executions_of(runs)
    # A run may have no executions, such as one that was up to date.
    named = {
        uri for run_id in runs & records.keys() for uri in records[run_id].artifacts
    }
    artifacts, made_by = graph.upstream(
        {
            *ids_in(*(item.inputs for item in executions)),
            *ids_in(*(item.outputs for item in executions)),
            *(item.id for item in graph.artifacts.values() if item.uri in named),
            *(item.model_id for item in served if item.model_id is not None),
        }
    )
    proofs = {
        artifact for item in baselines for artifact in (item.model.id, item.blessing_id)
    }
    return Kept(
        frozenset(runs),
        frozenset({*artifacts, *proofs}),
        frozenset({*made_by, *(execution.id for execution in executions)}),
    )


def _newest(run_ids: list[str], status: Mapping[str, str], keep: int) -> list[str]:
    """Returns the newest runs, and open ones; those that were up to date do not count.

    Otherwise scheduled runs without changes would displace a resumable one. A service
    may run an older one still.
    """
    counted = [run_id for run_id in run_ids if status.get(run_id) != "up_to_date"]
    oldest = "" if len(counted) <= keep else counted[-keep]
    return [x for x in run_ids if x >= oldest or status.get(x) == "running"]


def _runs_of(graph: MetadataGraph, served: Iterable[ServedModel]) -> Iterator[str]:
    """Yields the runs that pushed the versions, and those that trained the models."""
    for item in served:
        if item.run_id is not None:
            yield item.run_id
        maker = graph.producer(item.model_id or 0)
        if maker is not None and maker.run_id is not None:
            yield maker.run_id
