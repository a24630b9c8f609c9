"""Compiles the pipeline of a run, and resolves the nodes that are in the cache.

It runs in one process before the first node: a process per cached node would cost a
fraction of a second each.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from tfx.dsl.compiler import compiler, constants
from tfx.orchestration.portable import runtime_parameter_utils

from runners.cache.node_cache import NodeCache, WouldRun
from runners.engine import Graph
from runners.local.node_failure import as_error, explain_failure
from runners.local.node_job import (
    connection_of,
    describe_outputs,
    launch,
    read_results,
)
from sluice.errors import UsageError, unknown_node
from sluice.node_kinds import kind_of, leading_to
from sluice.record.parts import FINISHED, NodeEnd, NodeRecord
from sluice.record.run_record import NOT_ASKED_FOR, RunOptions
from sluice.storage import atomic
from sluice.workspace import Workspace


def prepare(
    graph: Graph, options: RunOptions, resumed: bool
) -> tuple[list[NodeRecord], list[NodeEnd]]:
    """Compiles the pipeline and stores the IR; a resumed run has it already.

    Args:
      graph: of the run; the IR of a script's pipeline is stored.
      options: of the run.
      resumed: whether the run was prepared before.

    Returns:
      The nodes in topological order, and the ends of those that need not run.

    Raises:
      SluiceError: the pipeline cannot be run.
    """
    try:
        if graph.workspace and not (resumed and graph.ir_file.exists()):
            ir = compile_config(graph, graph.workspace, options)
        else:
            ir = graph.read_ir()
        if graph.workspace:
            _check_engine(graph)
        substitute_run_id(ir, graph.run_dir.name)
        _check(ir)
        nodes = nodes_of(ir)
        known = [node.id for node in nodes]
        for name in (*options.forced, *options.to_nodes):
            if name not in known:
                raise unknown_node(name, known, _name(ir))
        _mark(nodes, options.to_nodes)
        atomic.write_bytes(graph.ir_file, ir.SerializeToString(deterministic=True))
        if resumed or not (options.use_cache and _has_history(ir)):
            return nodes, []
        return nodes, list(_resolve_cached(graph, ir, nodes, options.forced))
    except Exception as error:
        os.write(2, traceback.format_exc().encode())
        raise as_error(explain_failure("the pipeline", error)) from error


def compile_config(graph: Graph, workspace: Path, options: RunOptions) -> Any:
    """Returns the IR of the stored config's pipeline; checks what it names."""
    from pipeline.checks.before_run import check_with_tensorflow
    from pipeline.config.serialize import read_stored_config
    from pipeline.graph.create_pipeline import create_pipeline
    from pipeline.graph.locations import local_locations

    config = read_stored_config(graph.config_file)
    places = local_locations(config, Workspace(workspace))
    check_with_tensorflow(config, options.to_nodes)
    pipeline = create_pipeline(config, places, options.accept_data, trial=options.trial)
    return compiler.Compiler().compile(pipeline)


def _check_engine(graph: Graph) -> None:
    """Raises RemoteError if the engine of the Beam pipelines does not answer."""
    from pipeline.config.serialize import read_stored_config
    from sluice.engine_runner import (
        require_flink,
        require_job_server,
        require_worker_pool,
    )

    beam = read_stored_config(graph.config_file).beam
    if beam.engine == "local":
        return
    require_job_server(beam.job_endpoint)
    if beam.engine == "flink":
        if beam.master != "local":
            require_flink(beam.master)
        # Other machines have pools of their own.
        if beam.master.partition(":")[0] in ("local", "localhost", "127.0.0.1"):
            require_worker_pool(beam.worker_pool)


def substitute_run_id(ir: Any, run_id: str) -> None:
    """Sets the run's id in a compiled pipeline."""
    runtime_parameter_utils.substitute_runtime_parameter(
        ir, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: run_id}
    )


def nodes_of(ir: Any) -> list[NodeRecord]:
    """Returns the nodes of a compiled pipeline, none of which has run."""
    nodes = [node.pipeline_node for node in ir.nodes]
    return [
        NodeRecord(
            node.node_info.id,
            kind_of(node.node_info.type.name).name,
            upstream=list(node.upstream_nodes),
        )
        for node in nodes
    ]


def _mark(nodes: Sequence[NodeRecord], to_nodes: Collection[str]) -> None:
    """Skips the nodes that lead to none of ``to_nodes``, if there are any."""
    needed = leading_to(to_nodes, {node.id: node.upstream for node in nodes})
    for node in nodes:
        if to_nodes and node.id not in needed:
            node.state, node.reason = "skipped", NOT_ASKED_FOR


def _check(ir: Any) -> None:
    where = _name(ir)
    if not ir.nodes:
        raise UsageError("the pipeline has no nodes", where=where)
    if not all(node.HasField("pipeline_node") for node in ir.nodes):
        raise UsageError(
            "the local runner does not run nested pipelines",
            where=where,
            hint="add the inner pipeline's components to the outer one",
        )
    connection = connection_of(ir)
    kind = connection.WhichOneof("config")
    if kind == "fake_database" or (
        kind == "sqlite" and not connection.sqlite.filename_uri
    ):
        raise UsageError(
            "the pipeline's metadata is in memory, where other processes cannot read "
            "it",
            where=where,
            expected="sqlite_metadata_connection_config(path)",
        )


def _name(ir: Any) -> str:
    return ir.pipeline_info.id


def _has_history(ir: Any) -> bool:
    """Whether the metadata may hold executions; an SQLite file may not exist yet."""
    connection = connection_of(ir)
    if not connection.HasField("sqlite"):
        return True
    path = Path(connection.sqlite.filename_uri)
    return path.exists() and path.stat().st_size > 0


def _resolve_cached(
    graph: Graph, ir: Any, nodes: Sequence[NodeRecord], forced: Collection[str]
) -> list[NodeEnd]:
    """Returns the ends of cached nodes and of resolvers whose upstream is resolved."""
    ends: dict[str, NodeEnd] = {}
    for node in nodes:
        wanted = node.state != "skipped" and node.id not in forced
        if not wanted or not ends.keys() >= set(node.upstream):
            continue
        started = time.monotonic()
        try:
            launch(ir, node.id, NodeCache(graph.roots, plan=True))
        except WouldRun:
            continue
        except Exception:
            # The node's own process reports the error.
            os.write(2, traceback.format_exc().encode())
            continue
        end = NodeEnd(node.id, "cached", time.monotonic() - started)
        end, properties = read_results(graph, ir, end)
        describe_outputs(graph, ir, end, properties)
        if end.state in FINISHED:
            ends[node.id] = end
    return list(ends.values())
