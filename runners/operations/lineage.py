"""Operation: the data, schema, code and run behind an artifact."""

from __future__ import annotations

from typing import Any

from pipeline.config.config import Config
from runners.metadata.read_metadata import read_metadata
from runners.metadata.trace_lineage import find_artifact, served_models, trace_lineage
from runners.operations.find_run import (
    not_run_yet,
    serving_dir_of,
    workspace_of,
)


def find_lineage(config: Config, reference: str) -> dict[str, Any]:
    """Returns the lineage of an artifact or served version, and how it was read.

    Raises:
      UsageError: there is no such artifact, or the pipeline has not run yet.
      WorkspaceError: the metadata cannot be read.
      ServingError: a serving directory cannot be read.
    """
    workspace = workspace_of(config)
    graph = read_metadata(workspace.metadata_db)
    if not graph.artifacts:
        raise not_run_yet(config.name, workspace)
    served = served_models(graph, [serving_dir_of(config), workspace.serving])
    artifact_id, read_as = find_artifact(graph, served, reference)
    return {"read_as": read_as, **trace_lineage(graph, artifact_id, served)}
