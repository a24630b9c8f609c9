"""Operation: the data, schema, code and run behind an artifact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.config.config import Config
from runners.cloud.submitted_job import is_service_run
from runners.metadata.read_metadata import Execution, MetadataGraph, read_metadata
from runners.metadata.trace_lineage import find_artifact, served_models, trace_lineage
from runners.operations.find_run import (
    not_run_yet,
    readable_runs,
    serving_dir_of,
    workspace_of,
)
from sluice.mlmd_items import Artifact
from sluice.record.run_record import RunRecord

# States of executions in ML Metadata by those of nodes.
_STATES = {"ran": "complete", "cached": "cached", "blocked": "complete"}


def find_lineage(config: Config, reference: str) -> dict[str, Any]:
    """Returns the lineage of an artifact or served version, and how it was read.

    Raises:
      UsageError: there is no such artifact, or the pipeline has not run yet.
      WorkspaceError: the metadata cannot be read.
      ServingError: a serving directory cannot be read.
    """
    workspace = workspace_of(config)
    in_service = [
        record
        for record in list(readable_runs(workspace))[::-1]
        if is_service_run(workspace.run_dir(record.run_id))
    ]
    graph = _with_runs(read_metadata(workspace.metadata_db), in_service)
    if not graph.artifacts:
        raise not_run_yet(config.name, workspace)
    served = served_models(graph, [serving_dir_of(config), workspace.serving])
    artifact_id, read_as = find_artifact(graph, served, reference)
    return {"read_as": read_as, **trace_lineage(graph, artifact_id, served)}


def _with_runs(graph: MetadataGraph, records: Sequence[RunRecord]) -> MetadataGraph:
    """Returns a graph with the executions of runs whose metadata is in a service."""
    artifacts, executions = dict(graph.artifacts), dict(graph.executions)
    for record in records:
        for uri, item in record.artifacts.items():
            known = Artifact(item.id, item.type, uri, created_at=record.started_at)
            artifacts.setdefault(item.id, known)
        for node in record.nodes:
            number = max(executions, default=0) + 1
            at = node.started_at or record.started_at
            executions[number] = Execution(
                id=number,
                node=node.id,
                kind=node.kind,
                run_id=record.run_id,
                state=_STATES.get(node.state, "failed"),
                started_at=at,
                ended_at=at,
                inputs=_ids(record, node.inputs),
                outputs=_ids(record, node.outputs),
            )
    return MetadataGraph(artifacts, executions)


def _ids(record: RunRecord, uris: dict[str, list[str]]) -> dict[str, tuple[int, ...]]:
    known = record.artifacts
    return {
        key: tuple(known[uri].id for uri in found if uri in known)
        for key, found in uris.items()
    }
