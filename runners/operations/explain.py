"""Operation: explains whether a node would run now, and what has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from components.tfrecord_gen.spans.span_choice import SPANS_PATH, SpanChoice
from pipeline.config.config import Config
from pipeline.graph.choose_spans import choose_spans
from pipeline.graph.validate_graph import check_node_ids
from runners.cloud.submitted_job import SPEC_FILE
from runners.local.processes.job import Job
from runners.local.query_job import run_query_job, temporary_run_dir
from runners.metadata.metadata_file import check_readable, copy_metadata
from runners.operations.pipeline_request import PipelineRequest
from runners.operations.service_runs import service_run_dirs
from sluice.record.load_record import load_record
from sluice.storage import stat_cache
from sluice.workspace import Workspace


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

    With a ``cloud`` section, in its service: compared with what was submitted before.

    Raises:
      UsageError: the config or its data is invalid, or there is no such node.
      WorkspaceError: the metadata is damaged.
      NodeError: the process failed otherwise.
    """
    config = request.validated_config()
    check_node_ids(config, [request.node])
    choice = choose_spans(config)
    workspace = request.workspace_of(config)
    if config.cloud is not None:
        nodes = _explain_in_service(config, choice, workspace, request.node)
        return Explanation(config.name, request.node, nodes)
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


def _explain_in_service(
    config: Config, choice: SpanChoice, workspace: Workspace, node: str
) -> list[dict[str, Any]]:
    """Compares the compiled pipeline with those of the runs in its service."""
    from runners.cloud.compile_spec import compile_config
    from runners.cloud.explain_tasks import SubmittedRun, explain_tasks
    from runners.cloud.job_inputs import job_parameters
    from runners.cloud.spec import load_spec, read_spec

    job = compile_config(config).job
    values = job_parameters(job, config, choice)
    job["runtimeConfig"] = {**job.get("runtimeConfig", {}), "parameterValues": values}
    runs = [
        SubmittedRun(load_spec(run_dir / SPEC_FILE), load_record(run_dir))
        for run_dir in reversed(service_run_dirs(workspace))
    ]
    return explain_tasks(read_spec(job), runs, node)
