"""Operation: compiles a pipeline in a process of its own and returns its graph."""

from __future__ import annotations

from runners.local.graph_file import GraphFile
from runners.local.job_result import PREPARE
from runners.local.processes.job import Job
from runners.local.query_job import query_job, question_folder
from runners.operations.pipeline_request import PipelineRequest
from sluice.graph import GraphNode


def graph(request: PipelineRequest) -> list[GraphNode]:
    """Returns the nodes of a pipeline; takes as long as importing TFX does.

    Raises:
      UsageError: the config is wrong.
      NodeError: the process failed otherwise.
    """
    config = request.validated_config()
    workspace = request.workspace_of(config)
    with question_folder(config) as run_dir:
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
        query_job(job, run_dir, PREPARE, cwd=config.root)
        compiled = GraphFile.load(run_dir)
    assert compiled is not None
    return [
        GraphNode(node.id, node.kind, node.upstream, node.gate)
        for node in compiled.nodes
    ]
