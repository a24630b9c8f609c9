"""Operation: explains whether a node would run now, and what has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from components.tfrecord_gen.spans.span_choice import SPANS_PATH
from pipeline.graph.choose_spans import choose_spans
from pipeline.graph.validate_graph import check_node_ids
from runners.local.processes.job import Job
from runners.local.query_job import run_query_job, temporary_run_dir
from runners.metadata.metadata_file import check_readable, copy_metadata
from runners.operations.pipeline_request import PipelineRequest
from sluice.storage import stat_cache


@dataclass(frozen=True, kw_only=True)
class ExplainRequest(PipelineRequest):
    """The node to explain."""

    node: str


@dataclass(frozen=True)
class Explanation:
    """Whether a node would run, and the reasons.

    Attributes:
      pipeline: its name.
      node: the node to explain.
      nodes: the node and all that are upstream of it; each with ``node``,
        ``would_run``, ``because``, ``waits_for`` and ``last_run``; ``resumes`` says
        where its training would go on, None if from the beginning.
    """

    pipeline: str
    node: str
    nodes: list[dict[str, Any]]

    @property
    def asked(self) -> dict[str, Any]:
        """The entry of the node to explain."""
        return next(item for item in self.nodes if item["node"] == self.node)

    @property
    def causes(self) -> list[dict[str, Any]]:
        """The other nodes that would run because of a change of their own."""
        return [
            item
            for item in self.nodes
            if item["because"] and item["would_run"] and item["node"] != self.node
        ]

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {"schema_version": 1, "pipeline": self.pipeline, "nodes": self.nodes}


def explain(request: ExplainRequest) -> Explanation:
    """Returns whether a node would run, found by a process that imports TFX.

    Raises:
      UsageError: the config or its data is invalid, or there is no such node.
      WorkspaceError: the metadata is damaged.
      NodeError: the process failed otherwise.
    """
    config = request.validated_config()
    check_node_ids(config, [request.node])
    choice = choose_spans(config)
    workspace = request.workspace_of(config)
    with temporary_run_dir(config) as run_dir:
        copy = run_dir / "metadata.db"
        if workspace.metadata_db.exists():
            check_readable(workspace)
            copy_metadata(workspace.metadata_db, copy)
        job = Job(
            function="runners.local.explain_job:explain",
            arguments={
                "run_dir": str(run_dir),
                "workspace": str(workspace.root),
                "metadata_copy": str(copy),
                "node_id": request.node,
            },
            log=str(run_dir / "logs" / "explain.log"),
            environment={
                stat_cache.DIGESTS_FILE: str(workspace.digests_file),
                SPANS_PATH: str(choice.save(run_dir)),
            },
        )
        nodes = run_query_job(job, run_dir, "explain", cwd=config.root)["nodes"]
    return Explanation(config.name, request.node, nodes)
