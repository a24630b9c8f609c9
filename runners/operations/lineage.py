"""Operation: traces an artifact or version to its data, schema, code and run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.cloud.submitted_job import SPEC_FILE, is_service_run
from runners.metadata.find_artifact import Found, find_artifact
from runners.metadata.metadata_graph import Execution, MetadataGraph
from runners.metadata.read_metadata import read_metadata
from runners.metadata.served_models import served_models
from runners.metadata.trace_lineage import Lineage, trace_lineage
from runners.operations.find_run import not_run_yet
from runners.operations.pipeline_request import PipelineRequest
from runners.operations.service_runs import service_run_dirs
from sluice.errors import UsageError
from sluice.mlmd_items import Artifact
from sluice.record import events
from sluice.record.events import NodeFinished
from sluice.record.journal import Journal
from sluice.workspace import Workspace

# States of executions in ML Metadata by those of nodes.
_STATES = {"ran": "complete", "cached": "cached", "blocked": "complete"}


@dataclass(frozen=True, kw_only=True)
class LineageRequest(PipelineRequest):
    """The artifact to trace; ``reference`` is one that ``find_artifact`` accepts."""

    reference: str


@dataclass(frozen=True)
class Traced:
    """An artifact or version that was found, and its lineage."""

    pipeline: str
    found: Found
    lineage: Lineage

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        read_as = self.found.read_as
        head = {"schema_version": 1, "pipeline": self.pipeline, "read_as": read_as}
        return {**head, **self.lineage.to_dict()}


def lineage(request: LineageRequest) -> Traced:
    """Returns the lineage of an artifact or of a served version.

    Raises:
      UsageError: there is no such artifact, or the pipeline has not run yet.
      WorkspaceError: the metadata cannot be read.
      ServingError: a serving directory cannot be read.
    """
    config = request.load_config()
    workspace = request.workspace_of(config)
    graph = read_metadata(workspace.metadata_db)
    graph = _add_service_runs(graph, service_run_dirs(workspace))
    rehearsed = _rehearsed_run_dirs(workspace)
    if not (graph.artifacts or rehearsed):
        raise not_run_yet(request.name, workspace, request.workspace_dir)
    served = served_models(graph, [request.serving_dir_of(config), workspace.serving])
    try:
        found = find_artifact(graph, served, request.reference)
    except UsageError:
        # Last: the newest output of a name is never one that was rehearsed.
        graph = _add_service_runs(graph, rehearsed)
        found = find_artifact(graph, served, request.reference)
    traced = trace_lineage(graph, found.artifact_id, served)
    return Traced(config.name, found, traced)


def _rehearsed_run_dirs(workspace: Workspace) -> list[Path]:
    run_dirs = map(workspace.run_dir, workspace.run_ids())
    return [
        run_dir
        for run_dir in run_dirs
        if (run_dir / SPEC_FILE).exists() and not is_service_run(run_dir)
    ]


def _add_service_runs(graph: MetadataGraph, run_dirs: Iterable[Path]) -> MetadataGraph:
    """Returns a graph with the executions of runs in a service added.

    A service keeps its metadata to itself; the journals have what its answers said.
    """
    ended = sorted(
        (item for run_dir in run_dirs for item in _ends_of(run_dir)),
        key=lambda item: item[2].at,
    )
    artifacts, executions = dict(graph.artifacts), dict(graph.executions)
    first = max(executions, default=0) + 1
    for number, (run_id, kind, event, properties) in enumerate(ended, start=first):
        for found in (*event.inputs.values(), *event.outputs.values()):
            for one in found:
                known = Artifact(
                    one.id, one.type, one.uri, "live", event.at, one.properties
                )
                artifacts.setdefault(one.id, known)
        executions[number] = Execution(
            id=number,
            node=event.node,
            kind=kind,
            run_ids=(run_id,),
            state=_STATES.get(event.state, "failed"),
            started_at=event.at,
            ended_at=event.at,
            properties=properties,
            inputs=_ids(event.inputs),
            outputs=_ids(event.outputs),
        )
    return MetadataGraph(artifacts, executions)


def _ends_of(run_dir: Path) -> Iterator[tuple[str, str, NodeFinished, dict[str, Any]]]:
    """Yields the run, kind, end and constant parameters of each task that has ended."""
    from runners.cloud.service_run import planned_nodes
    from runners.cloud.spec import load_spec

    spec = load_spec(run_dir / SPEC_FILE)
    kinds = {node.id: node.kind for node in planned_nodes(spec)}
    for event in Journal(run_dir).events():
        if isinstance(event, NodeFinished) and event.node in kinds:
            constants = spec.task(event.node).constants
            yield run_dir.name, kinds[event.node], event, constants


def _ids(found: Mapping[str, list[events.Artifact]]) -> dict[str, tuple[int, ...]]:
    return {key: tuple(item.id for item in items) for key, items in found.items()}
