"""Operation: traces an artifact or version to its data, schema, code and run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.cloud.service_metadata import add_service_runs
from runners.cloud.submitted_job import SPEC_FILE, is_service_run
from runners.metadata.find_artifact import Found, find_artifact
from runners.metadata.read_metadata import read_metadata
from runners.metadata.served_models import served_models
from runners.metadata.trace_lineage import Lineage, trace_lineage
from runners.operations.find_run import not_run_yet
from runners.operations.pipeline_request import PipelineRequest
from runners.operations.service_runs import service_run_dirs
from sluice.errors import UsageError
from sluice.workspace import Workspace


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
    graph = add_service_runs(graph, service_run_dirs(workspace))
    rehearsed = _rehearsed_run_dirs(workspace)
    if not (graph.artifacts or rehearsed):
        raise not_run_yet(request.name, workspace, request.workspace_dir)
    served = served_models(graph, [request.serving_dir_of(config), workspace.serving])
    try:
        found = find_artifact(graph, served, request.reference)
    except UsageError:
        # Last: the newest output of a name is never one that was rehearsed.
        graph = add_service_runs(graph, rehearsed)
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
