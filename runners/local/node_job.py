"""The job of one node: launches it with TFX and reports the result."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tfx.orchestration import metadata
from tfx.orchestration.local import runner_utils
from tfx.orchestration.portable import cache_utils, launcher

from runners.cache.node_cache import NodeCache
from runners.local.bad_records import bad_records
from runners.local.document_content import DescribedNode
from runners.local.explain_failure import explain_failure
from runners.local.follow_progress import progress_file
from runners.local.graph_file import GraphFile, PlannedNode
from runners.local.job_environment import JobEnvironment
from runners.local.job_result import write_exception, write_result
from runners.local.node_launcher import NodeLauncher
from runners.local.prepare_job import connection_of, read_ir
from runners.local.read_node_result import read_node_result
from runners.local.run_result import NodeResult
from runners.local.tfx_log_filter import tfx_log_filter
from runners.local.write_documents import write_documents
from runners.metadata.read_metadata import read_upstream
from runners.metadata.served_models import served_models
from runners.metadata.trace_lineage import trace_lineage
from runners.retention.training_checkpoints import NodeCheckpoints
from sluice import interrupt, progress
from sluice.compat import exclude_keras_from_autograph
from sluice.mlmd_items import plain_properties
from sluice.record.documents.privacy import Privacy
from sluice.record.events import NodeFailure
from sluice.record.run_record import DocumentRecord
from sluice.secrets import redact, redact_output
from sluice.workspace import Workspace


def run_node(
    run_dir: str, node_id: str, use_cache: bool, from_scratch: bool = False
) -> None:
    """Runs a node of a prepared run and writes its result.

    ``from_scratch`` deletes earlier checkpoints of its training.
    """
    place = Path(run_dir)
    interrupt.listen()
    exclude_keras_from_autograph()
    job_environment = JobEnvironment.load(place)
    job_environment.enter()
    if job_environment.project_root:
        redact_output()
    ir = read_ir(place)
    graph = GraphFile.load(place)
    assert graph is not None
    planned = next(node for node in graph.nodes if node.id == node_id)
    cache = make_cache(ir, node_id, job_environment, use_cache=use_cache)
    checkpoints = _checkpoints_of(place, node_id, job_environment)

    def choose_checkpoint_dir() -> None:
        assert cache.key is not None
        folder = checkpoints.begin(cache.key, from_scratch=from_scratch)
        os.environ[interrupt.CHECKPOINT_DIR] = str(folder)

    started = time.monotonic()
    _, reported = progress.read(progress_file(place, node_id))
    error: NodeFailure | None = None
    stopped = False
    try:
        launch(
            ir,
            node_id,
            cache,
            before_executor=choose_checkpoint_dir,
            in_project=bool(job_environment.project_root),
            resolves_secrets=node_id in _custom_nodes(place),
        )
    except interrupt.Interrupted:
        stopped = True
    except (Exception, SystemExit) as raised:
        # Some libraries convert the interrupt into their own exception.
        stopped = interrupt.requested()
        if not stopped:
            _log_traceback()
            error = _explain(
                node_id, raised, partial(bad_records, place, planned.upstream)
            )
            if not job_environment.project_root:
                write_exception(place, node_id, raised)
    duration_s = time.monotonic() - started
    lines, _ = progress.read(progress_file(place, node_id), reported)
    notes = tuple(line["line"] for line in lines if line.get("note"))
    ended = Ended(duration_s, error, stopped, notes)
    # A request to stop must no longer interrupt the report.
    with interrupt.cooperative():
        result = report_node(place, planned, ir, cache, ended)
        if cache.key and result.state in ("ran", "cached"):
            checkpoints.delete(cache.key)


@dataclass(frozen=True)
class Ended:
    """Outcome of a launch.

    ``notes`` are what it reported to be kept, see ``sluice.progress.note``.
    """

    duration_s: float
    error: NodeFailure | None = None
    stopped: bool = False
    notes: tuple[str, ...] = ()


def report_node(
    run_dir: Path, planned: PlannedNode, ir: Any, cache: NodeCache, ended: Ended
) -> NodeResult:
    """Writes and returns the result of a node that has been launched."""
    node_id, error = planned.id, ended.error
    properties: dict[str, Any] = {}
    try:
        with metadata.Metadata(connection_of(ir)) as handle:
            result = read_node_result(
                handle.store, planned, ended.duration_s, error, ended.stopped
            )
            if result.execution_id is not None:
                ids = [result.execution_id]
                (execution,) = handle.store.get_executions_by_id(ids)
                properties = plain_properties(execution)
    except Exception as unread:
        # E.g. on a full disk, which then is the node's own failure too.
        _log_traceback()
        error = error or _explain(node_id, unread)
        reason = error.message.splitlines()[0]
        result = NodeResult(node_id, "failed", ended.duration_s, reason, error)
    facts = asdict(result)
    facts["cache"] = {"key": cache.key, "parts": cache.parts} if cache.key else None
    facts.update(_describe(planned, result, properties, run_dir, ir))
    facts["notes"] += [f"{node_id}: {note}" for note in ended.notes]
    write_result(run_dir, node_id, facts)
    return result


def make_cache(
    ir: Any, node_id: str, job_environment: JobEnvironment, **options: bool
) -> NodeCache:
    """Returns the cache of a node; see ``NodeCache`` for the options."""
    deployment = runner_utils.extract_local_deployment_config(ir)
    driver = runner_utils.extract_custom_driver_spec(deployment, node_id)
    return NodeCache(
        cache_utils,
        roots=job_environment.roots(),
        driver=driver.class_path if driver else None,
        **options,
    )


def launch(
    ir: Any,
    node_id: str,
    cache: NodeCache,
    **options: Any,
) -> None:
    """Launches a node with TFX's portable launcher and our cache."""
    node = next(
        node.pipeline_node
        for node in ir.nodes
        if node.pipeline_node.node_info.id == node_id
    )
    deployment = runner_utils.extract_local_deployment_config(ir)
    launcher.cache_utils = cache
    tfx_log_filter()
    NodeLauncher(
        **options,
        pipeline_node=node,
        mlmd_connection=metadata.Metadata(connection_of(ir)),
        pipeline_info=ir.pipeline_info,
        pipeline_runtime_spec=ir.runtime_spec,
        executor_spec=runner_utils.extract_executor_spec(deployment, node_id),
        custom_driver_spec=runner_utils.extract_custom_driver_spec(deployment, node_id),
        platform_config=_platform_config(deployment, node_id),
    ).launch()


def _checkpoints_of(
    run_dir: Path, node_id: str, job_environment: JobEnvironment
) -> NodeCheckpoints:
    """Returns a node's checkpoint folders.

    They are the workspace's, whose lock keeps other runs away. Runs of a script's
    pipeline have no such lock: each has its own.
    """
    in_project = job_environment.project_root is not None
    owner = run_dir.parents[1] if in_project else run_dir
    return NodeCheckpoints(Workspace(owner).checkpoints / node_id)


def _platform_config(deployment: Any, node_id: str) -> Any:
    """Returns the docker options of a container node, None for any other node."""
    if node_id not in deployment.node_level_platform_configs:
        return None
    config = deployment.node_level_platform_configs[node_id]
    return getattr(config, config.WhichOneof("config"))


def _custom_nodes(run_dir: Path) -> Container[str]:
    config = run_dir / "config.json"
    if not config.exists():
        return ()
    from pipeline.config.serialize import custom_nodes

    return custom_nodes(config)


def _describe(
    planned: PlannedNode,
    result: NodeResult,
    properties: Mapping[str, Any],
    place: Path,
    ir: Any,
) -> dict[str, Any]:
    """Returns the record's documents; an error becomes a note."""
    notes: list[str] = []

    def note(error: Exception) -> None:
        _log_traceback()
        text = f"{planned.id}: its outputs could not be described: {error}"
        notes.append(redact(text).splitlines()[0])

    def lineage_of(artifact_id: int) -> dict[str, Any]:
        with metadata.Metadata(connection_of(ir)) as handle:
            upstream, complete = read_upstream(handle.store, artifact_id)
        traced = trace_lineage(upstream, artifact_id, served_models(upstream, ()))
        return {**traced.made_of(), "complete": complete}

    described = DescribedNode(
        id=planned.id,
        outputs=result.outputs,
        inputs=result.inputs,
        properties=properties,
        lineage_of=lineage_of,
        is_resolver=planned.resolver,
        is_cached=result.state == "cached",
    )
    documents: list[DocumentRecord] = []
    config = place / "config.json"
    try:
        privacy = Privacy()
        if config.exists():
            from pipeline.config.serialize import privacy_of

            privacy = privacy_of(config)
        documents = write_documents(described, place, privacy, note)
    except Exception as error:
        note(error)
    return {"documents": [vars(item) for item in documents], "notes": notes}


def _log_traceback() -> None:
    os.write(2, redact(traceback.format_exc()).encode())


def _explain(node_id: str, *args: Any) -> NodeFailure:
    error = explain_failure(node_id, *args)
    return replace(error, message=redact(error.message))
