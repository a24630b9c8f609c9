"""Runs one node with TFX's launcher, in a process of its own."""

from __future__ import annotations

import logging
import os
import resource
import shutil
import time
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tfx.orchestration import metadata
from tfx.orchestration.local import runner_utils

from runners.cache.node_cache import NodeCache
from runners.documents.write import write_documents
from runners.engine import Graph
from runners.local.node_end import add_results, read_end
from runners.local.node_failure import explain_failure
from runners.local.node_launcher import NodeLauncher
from runners.metadata.read_metadata import read_upstream
from runners.metadata.trace_lineage import served_models, trace_lineage
from runners.retention.training_checkpoints import begin_training
from sluice import interrupt, progress
from sluice.node_environment import node_environment, tell
from sluice.node_kinds import kind_of
from sluice.patches import beam
from sluice.patches.multiprocessing import picklable
from sluice.patches.tensorflow import exclude_keras_from_autograph, holds_accelerator
from sluice.patches.tfx import replace_cache
from sluice.record.parts import NodeEnd
from sluice.workspace import Workspace


def run_node(
    graph: Graph, node_id: str, use_cache: bool, from_scratch: bool
) -> Iterator[tuple[NodeEnd, Any]]:
    """Runs a node of a prepared run, then describes its outputs.

    The nodes after it may start meanwhile. ``from_scratch`` deletes earlier checkpoints
    of its training.

    Yields:
      How it ended, and the exception that a script's node has raised, picklable; then
      the same again, with the documents of its outputs.
    """
    interrupt.listen()
    exclude_keras_from_autograph()
    beam.skip_sizes_in_cache()
    beam.remember_signatures()
    beam.check_records_fast()
    ir = graph.read_ir()
    cache = NodeCache(graph.roots, use_cache=use_cache)
    owner = Workspace(graph.workspace or graph.run_dir)
    checkpoints = owner.checkpoints / node_id

    def choose_checkpoint_dir() -> None:
        assert cache.key is not None
        folder = begin_training(checkpoints, cache.key, from_scratch=from_scratch)
        tell(checkpoint_dir=str(folder))

    started = time.monotonic()
    end, stopped, exception = NodeEnd(node_id, "ran"), False, None
    try:
        launch(
            ir,
            node_id,
            cache,
            before_executor=choose_checkpoint_dir,
            resolves_secrets=node_id in graph.custom_nodes(),
        )
    except interrupt.Interrupted:
        stopped = True
    except (Exception, SystemExit) as raised:
        # Some libraries convert the interrupt into their own exception.
        stopped = interrupt.requested()
        if not stopped:
            _log_traceback()
            end.error = explain_failure(node_id, raised)
            exception = None if graph.project_root else picklable(raised)
    end.duration_s = time.monotonic() - started
    # A request to stop must no longer interrupt the report.
    with interrupt.deferred():
        end, properties = read_results(graph, ir, end, stopped)
        if cache.key and end.state in ("ran", "cached"):
            shutil.rmtree(checkpoints / cache.key, ignore_errors=True)
        # The next node may need the accelerator that this process keeps.
        describes_first = holds_accelerator()
        if describes_first:
            describe_outputs(graph, ir, end, properties)
        yield end, exception
        if not describes_first:
            describe_outputs(graph, ir, end, properties)
        yield end, exception


def read_results(
    graph: Graph, ir: Any, end: NodeEnd, stopped: bool = False
) -> tuple[NodeEnd, dict[str, Any]]:
    """Returns the end of a launched node with its results, and its exec properties."""
    node = _node_of(ir, end.node)
    properties: dict[str, Any] = {}
    try:
        with metadata.Metadata(connection_of(ir)) as handle:
            end, properties = read_end(handle.store, node, end, stopped=stopped)
    except Exception as unread:
        # E.g. on a full disk, which then is the node's own failure too.
        _log_traceback()
        end.error = end.error or explain_failure(end.node, unread)
        end.state, end.reason = "failed", end.error.message.splitlines()[0]
    kind = kind_of(node.node_info.type.name)
    # A custom Pusher does not push to the directory of `push`.
    pushes = kind.pushes and end.node not in graph.custom_nodes()
    end = add_results(end, pushes=pushes)
    lines, _ = progress.read(Path(node_environment().progress_file or os.devnull))
    end.notes += [f"{end.node}: {line['line']}" for line in lines if line.get("note")]
    end.peak_memory_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return end, properties


def launch(ir: Any, node_id: str, cache: NodeCache, **options: Any) -> None:
    """Launches a node with TFX's portable launcher and our cache."""
    deployment = runner_utils.extract_local_deployment_config(ir)
    replace_cache(cache)
    # TFX warns of it for every input of every node.
    logging.getLogger("absl").addFilter(_is_useful)
    NodeLauncher(
        **options,
        pipeline_node=_node_of(ir, node_id),
        mlmd_connection=metadata.Metadata(connection_of(ir)),
        pipeline_info=ir.pipeline_info,
        pipeline_runtime_spec=ir.runtime_spec,
        executor_spec=runner_utils.extract_executor_spec(deployment, node_id),
        custom_driver_spec=runner_utils.extract_custom_driver_spec(deployment, node_id),
        platform_config=_platform_config(deployment, node_id),
    ).launch()


def connection_of(ir: Any) -> Any:
    """Returns ML Metadata's ``ConnectionConfig`` of a compiled pipeline."""
    deployment = runner_utils.extract_local_deployment_config(ir)
    connection = deployment.metadata_connection_config
    return getattr(connection, connection.WhichOneof("connection_config"))


def _node_of(ir: Any, node_id: str) -> Any:
    for node in ir.nodes:
        if node.pipeline_node.node_info.id == node_id:
            return node.pipeline_node
    raise KeyError(node_id)


def _platform_config(deployment: Any, node_id: str) -> Any:
    """Returns the docker options of a container node, None for any other node."""
    if node_id not in deployment.node_level_platform_configs:
        return None
    config = deployment.node_level_platform_configs[node_id]
    return getattr(config, config.WhichOneof("config"))


def describe_outputs(
    graph: Graph, ir: Any, end: NodeEnd, properties: Mapping[str, Any]
) -> None:
    """Writes the documents of a node's outputs, and adds them to its end."""
    if kind_of(_node_of(ir, end.node).node_info.type.name).resolver:
        return

    def lineage_of(artifact_id: int) -> dict[str, Any]:
        with metadata.Metadata(connection_of(ir)) as handle:
            upstream, complete = read_upstream(handle.store, artifact_id)
        traced = trace_lineage(upstream, artifact_id, served_models(upstream, ()))
        del traced["uses"]  # Later runs use it.
        return {**traced, "complete": complete}

    write_documents(
        end,
        graph.run_dir,
        Workspace(graph.workspace or graph.run_dir).documents,
        properties,
        lineage_of=lineage_of,
        on_error=_log_traceback,
    )


def _is_useful(record: logging.LogRecord) -> bool:
    return "property_predicate is not supported" not in str(record.msg)


def _log_traceback() -> None:
    os.write(2, traceback.format_exc().encode())
