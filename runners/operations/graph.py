"""Operation: compiles a pipeline in a process of its own and returns its graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runners.local.graph_file import GraphFile
from runners.local.job_result import PREPARE
from runners.local.processes.job import Job
from runners.local.query_job import run_query_job, temporary_run_dir
from runners.operations.pipeline_request import PipelineRequest
from sluice.graph import GraphNode


@dataclass(frozen=True)
class PipelineGraph:
    """The nodes of a pipeline, in the order in which TFX compiled them."""

    pipeline: str
    nodes: tuple[GraphNode, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        keys = ("id", "kind", "upstream", "gate")
        rows = [{key: getattr(node, key) for key in keys} for node in self.nodes]
        return {"schema_version": 1, "pipeline": self.pipeline, "nodes": rows}


def graph(request: PipelineRequest) -> PipelineGraph:
    """Compiles a pipeline and returns its graph; takes as long as importing TFX does.

    Raises:
      UsageError: the config is invalid.
      NodeError: the process failed otherwise.
    """
    config = request.validated_config()
    workspace = request.workspace_of(config)
    with temporary_run_dir(config) as run_dir:
        job = Job(
            function="runners.local.prepare_job:prepare",
            arguments={
                "run_dir": str(run_dir),
                "workspace": str(workspace.root),
                "from_nodes": [],
                "to_nodes": [],
                "base_run_id": None,
            },
            log=str(run_dir / "logs" / "graph.log"),
        )
        run_query_job(job, run_dir, PREPARE, cwd=config.root)
        compiled = GraphFile.load(run_dir)
    assert compiled is not None
    nodes = (
        GraphNode(node.id, node.kind, node.upstream, node.gate)
        for node in compiled.nodes
    )
    return PipelineGraph(config.name, tuple(nodes))
