"""Runs the nodes of a pipeline one after another and reports what really happened.

TFX's LocalDagRunner returns normally after some failures, stops at others, and says
nothing in between. Here a failed node stops what depends on it and nothing else, each
node's end is an event, and every state is read back from ML Metadata.
"""

from __future__ import annotations

import os
import time
import traceback
from pathlib import Path
from typing import Any

from tfx.dsl.compiler import compiler, constants
from tfx.orchestration import metadata
from tfx.orchestration.local import runner_utils
from tfx.orchestration.pipeline import Pipeline
from tfx.orchestration.portable import cache_utils, launcher, runtime_parameter_utils

from runners.local import node_status
from runners.local.explain_failure import explain_failure
from runners.local.node_cache import NodeCache
from runners.local.node_log import node_log
from runners.local.run_result import NodeFailure, NodeResult, OnEvent, RunResult
from sluice.errors import ExitCode, UsageError
from sluice.progress import PROGRESS_FILE

_STOPPED = ("failed", "blocked", "not_reached", "interrupted")
_RESOLVER = "tfx.dsl.components.common.resolver.Resolver"


def run(
    pipeline: Pipeline,
    run_id: str,
    on_event: OnEvent | None = None,
    *,
    run_dir: Path | None = None,
) -> RunResult:
    """Runs a pipeline to its end or as far as it goes.

    Args:
      pipeline: as ``create_pipeline`` returns it; any TFX pipeline without nested
        pipelines, with its metadata in SQLite.
      run_id: names the run in ML Metadata; the same id continues that run.
      on_event: called with each event, see ``runners.local.run_result``.
      run_dir: where ``logs/<node>.log`` and ``progress/<node>.jsonl`` go; None leaves
        the nodes' output where it is.

    Returns:
      How each node ended. Failures of nodes do not raise.

    Raises:
      UsageError: the pipeline has no nodes or nests another one.
    """
    emit: OnEvent = on_event or (lambda event: None)
    ir = _compile(pipeline, run_id)
    nodes = [node.pipeline_node for node in ir.nodes]
    deployment = runner_utils.extract_local_deployment_config(ir)
    emit(
        {
            "event": "graph",
            "nodes": [
                {
                    "id": node.node_info.id,
                    "kind": node.node_info.type.name.rpartition(".")[2],
                    "upstream": list(node.upstream_nodes),
                }
                for node in nodes
            ],
        }
    )
    results: dict[str, NodeResult] = {}
    for node in nodes:
        node_id = node.node_info.id
        result = _held_back(node, results)
        if result is None:
            emit({"event": "node_started", "node": node_id})
            result = _launch(node, ir, deployment, run_dir)
        results[node_id] = result
        emit(result.to_event())
    return RunResult(run_id, tuple(results.values()))


def _compile(pipeline: Pipeline, run_id: str) -> Any:
    ir = compiler.Compiler().compile(pipeline)
    runtime_parameter_utils.substitute_runtime_parameter(
        ir, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: run_id}
    )
    if not ir.nodes:
        raise UsageError("the pipeline has no nodes", where=ir.pipeline_info.id)
    nested = [node for node in ir.nodes if not node.HasField("pipeline_node")]
    if nested:
        raise UsageError(
            "the local runner does not run nested pipelines",
            where=ir.pipeline_info.id,
        )
    return ir


def _held_back(node: Any, results: dict[str, NodeResult]) -> NodeResult | None:
    """Returns the result of a node that must not start, None if it may."""
    for upstream in node.upstream_nodes:
        before = results.get(upstream)
        if before is None or before.state not in _STOPPED:
            continue
        by_gate = before.state == "blocked" or (before.error and before.error.gate)
        return NodeResult(
            node.node_info.id,
            "blocked" if by_gate else "not_reached",
            reason=f"stopped by {before.node}" if before.error else before.reason,
        )
    return None


def _launch(node: Any, ir: Any, deployment: Any, run_dir: Path | None) -> NodeResult:
    node_id, kind = node.node_info.id, node.node_info.type.name
    run_id = ir.runtime_spec.pipeline_run_id.field_value.string_value
    connection = deployment.metadata_connection_config
    connection = getattr(connection, connection.WhichOneof("connection_config"))
    started = time.monotonic()
    error: NodeFailure | None = None
    with node_log(run_dir / "logs" / f"{node_id}.log" if run_dir else None):
        _report_progress_to(run_dir, node_id)
        try:
            stock = launcher.cache_utils
            launcher.cache_utils = NodeCache(cache_utils)
            try:
                launcher.Launcher(
                    pipeline_node=node,
                    mlmd_connection=metadata.Metadata(connection),
                    pipeline_info=ir.pipeline_info,
                    pipeline_runtime_spec=ir.runtime_spec,
                    executor_spec=runner_utils.extract_executor_spec(
                        deployment, node_id
                    ),
                    custom_driver_spec=runner_utils.extract_custom_driver_spec(
                        deployment, node_id
                    ),
                ).launch()
            finally:
                launcher.cache_utils = stock
        except Exception as raised:
            os.write(2, traceback.format_exc().encode())
            error = explain_failure(node_id, kind, raised)
    duration_s = time.monotonic() - started
    with metadata.Metadata(connection) as handle:
        return _read_back(handle.store, node, run_id, duration_s, error)


def _read_back(
    store: Any,
    node: Any,
    run_id: str,
    duration_s: float,
    error: NodeFailure | None,
) -> NodeResult:
    node_id = node.node_info.id
    executions = node_status.executions_of(store, node, run_id)
    execution = executions[-1] if executions else None
    state = "failed" if error else node_status.state_of(execution)
    outputs = node_status.outputs_of(store, execution) if execution else {}
    reason = None
    if state == "failed" and error is None:
        text = node_status.failure_text(execution) or "its inputs could not be resolved"
        error = NodeFailure(f"{node_id} failed: {text}", int(ExitCode.NODE))
    if error:
        reason = error.message.splitlines()[0]
    if execution and state == "ran" and node.node_info.type.name == _RESOLVER:
        everything = node_status.executions_of(store, node, None)
        earlier = [item for item in everything if item.id < execution.id]
        if earlier and node_status.outputs_of(store, earlier[-1]) == outputs:
            # A resolver always looks; what counts is whether it found something new.
            state, reason = "cached", "resolves to the same artifacts as before"
    return NodeResult(node_id, state, duration_s, reason, error, outputs)


def _report_progress_to(run_dir: Path | None, node_id: str) -> None:
    if run_dir is None:
        os.environ.pop(PROGRESS_FILE, None)
        return
    path = run_dir / "progress" / f"{node_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    os.environ[PROGRESS_FILE] = str(path)
