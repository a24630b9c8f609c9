"""The inputs and outputs of all runs in a service, in the form of ML Metadata's.

A service keeps its metadata to itself; the journals have what its answers said.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.cloud.service_run import planned_nodes
from runners.cloud.spec import Constant, Spec, load_spec
from runners.cloud.submitted_job import SPEC_FILE
from runners.metadata.metadata_graph import Execution, MetadataGraph
from sluice.mlmd_items import Artifact
from sluice.record import events
from sluice.record.journal import Journal

_STATES = {"ran": "complete", "cached": "cached", "blocked": "complete"}


@dataclass(frozen=True)
class _Ended:
    """The end of a task in one run."""

    run_id: str
    kind: str
    event: events.NodeFinished
    properties: dict[str, Any]


def add_service_runs(graph: MetadataGraph, run_dirs: Iterable[Path]) -> MetadataGraph:
    """Returns a graph with the executions of runs in a service added.

    Args:
      graph: of the runs of this machine.
      run_dirs: of the runs in a service.

    Raises:
      SluiceError: a run's files are damaged.
    """
    ended = [item for run_dir in run_dirs for item in _ends_of(run_dir)]
    ended.sort(key=lambda item: item.event.at)
    artifacts, executions = dict(graph.artifacts), dict(graph.executions)
    for number, item in enumerate(ended, start=max(executions, default=0) + 1):
        event = item.event
        for found in (*event.inputs.values(), *event.outputs.values()):
            for one in found:
                known = Artifact(
                    one.id, one.type, one.uri, "live", event.at, one.properties
                )
                artifacts.setdefault(one.id, known)
        executions[number] = Execution(
            id=number,
            node=event.node,
            kind=item.kind,
            run_ids=(item.run_id,),
            state=_STATES.get(event.state, "failed"),
            started_at=event.at,
            ended_at=event.at,
            properties=item.properties,
            inputs=_links(event.inputs),
            outputs=_links(event.outputs),
        )
    return MetadataGraph(artifacts, executions)


def _ends_of(run_dir: Path) -> list[_Ended]:
    spec = load_spec(run_dir / SPEC_FILE)
    kinds = {node.id: node.kind for node in planned_nodes(spec)}
    return [
        _Ended(run_dir.name, kinds[event.node], event, _constants(spec, event.node))
        for event in Journal(run_dir).events()
        if isinstance(event, events.NodeFinished) and event.node in kinds
    ]


def _constants(spec: Spec, task: str) -> dict[str, Any]:
    return {
        key: value.value
        for key, value in spec.task(task).parameters.items()
        if isinstance(value, Constant)
    }


def _links(found: dict[str, list[events.Artifact]]) -> dict[str, tuple[int, ...]]:
    return {key: tuple(item.id for item in items) for key, items in found.items()}
