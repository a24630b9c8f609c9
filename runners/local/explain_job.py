"""The job of ``sluice explain``: cache lookups without running nodes."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ml_metadata.proto import metadata_store_pb2
from tfx.components.example_gen.utils import (
    FINGERPRINT_PROPERTY_NAME,
    SPAN_PROPERTY_NAME,
    VERSION_PROPERTY_NAME,
)
from tfx.dsl.compiler import compiler
from tfx.orchestration import data_types_utils, metadata

from components.tfrecord_gen.component import contents_of
from components.tfrecord_gen.ingestion_report import Report
from components.tfrecord_gen.select_spans import window_of
from pipeline.config.serialize import read_stored_config
from pipeline.graph.create_pipeline import create_pipeline
from pipeline.graph.locations import local_locations
from runners.cache.changes import (
    content_changes,
    input_changes,
    package_changes,
    property_changes,
)
from runners.cache.node_cache import NodeCache, WouldRun, what_counts
from runners.engine import Graph
from runners.local.node_end import artifacts_of, contexts_of, executions_in, state_of
from runners.local.node_failure import as_error, explain_failure
from runners.local.node_job import connection_of, launch
from runners.local.prepare import substitute_run_id
from sluice.mlmd_items import plain_properties
from sluice.node_kinds import kind_of, leading_to
from sluice.record.parts import Artifacts
from sluice.workspace import Workspace

_DATA_PROPERTIES = (
    FINGERPRINT_PROPERTY_NAME,
    SPAN_PROPERTY_NAME,
    VERSION_PROPERTY_NAME,
)
_COMPLETE = metadata_store_pb2.Execution.COMPLETE


def explain(graph: Graph, node_id: str) -> list[dict[str, Any]]:
    """Returns whether a node and those upstream of it would run, and why.

    Works on a copy of the metadata, because a cache lookup registers contexts. The last
    outputs of a node that would run stand in for its new ones, so that the nodes after
    it are compared by their own changes.
    """
    try:
        config = read_stored_config(graph.config_file)
        workspace = Workspace(graph.workspace or graph.run_dir)
        places = replace(
            local_locations(config, workspace),
            pipeline_root=str(graph.run_dir / "artifacts"),
            metadata_db=graph.run_dir / "metadata.db",
            copies_inputs=False,
        )
        ir = compiler.Compiler().compile(create_pipeline(config, places))
        substitute_run_id(ir, graph.run_dir.name)
        answers: dict[str, dict[str, Any]] = {}
        for node in _leading_to(ir, node_id):
            answer = _explain_node(ir, node, graph.roots, answers)
            answers[node.node_info.id] = answer
        return list(answers.values())
    except Exception as error:
        os.write(2, traceback.format_exc().encode())
        raise as_error(explain_failure("explain", error)) from error


def _leading_to(ir: Any, node_id: str) -> list[Any]:
    """Returns a node and all upstream nodes, in topological order."""
    nodes = {node.pipeline_node.node_info.id: node.pipeline_node for node in ir.nodes}
    graph = {name: node.upstream_nodes for name, node in nodes.items()}
    needed = leading_to([node_id], graph)
    return [node for name, node in nodes.items() if name in needed]


def _explain_node(
    ir: Any, node: Any, roots: Sequence[Path], answers: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """Returns the answer for a node."""
    name, kind = node.node_info.id, kind_of(node.node_info.type.name)
    waits_for = [item for item in node.upstream_nodes if answers[item]["would_run"]]
    with metadata.Metadata(connection_of(ir)) as handle:
        last, run_id = _last_success(handle.store, node)
    answer: dict[str, Any] = {
        "node": name,
        "would_run": bool(waits_for),
        "because": [],
        "waits_for": waits_for,
        "last_run": run_id,
    }
    stand_in = last.id if last else None
    cache = NodeCache(roots, plan=not kind.system, stand_in=stand_in)
    try:
        with suppress(WouldRun):
            launch(ir, name, cache)
    except Exception:
        if not waits_for:
            raise
        # Its input does not exist yet, or any more.
        os.write(2, traceback.format_exc().encode())
        return answer
    if kind.system:
        answer["because"] = [] if waits_for else ["it only looks for artifacts"]
    elif cache.reason is not None:
        answer["would_run"] = True
        if last is None:
            answer["because"] = ["it has not finished before"]
        else:
            with metadata.Metadata(connection_of(ir)) as handle:
                lines = list(_changes(handle.store, last, cache, kind.ingests))
            answer["because"] = lines or [cache.reason]
    return answer


def _last_success(store: Any, node: Any) -> tuple[Any | None, str | None]:
    """Returns a node's last successful execution and its run, or neither."""
    contexts = [item for item in contexts_of(node) if item[0] != "pipeline_run"]
    for execution in reversed(executions_in(store, contexts)):
        if state_of(execution) in ("ran", "cached"):
            found = store.get_contexts_by_execution(execution.id)
            runs = [item.name for item in found if item.type == "pipeline_run"]
            return execution, "".join(runs[:1])
    return None, None


def _changes(store: Any, last: Any, cache: NodeCache, ingests: bool) -> Iterator[str]:
    """Yields what has changed since an execution, ingested files by name."""
    now = {
        name: _plain(value)
        for name, value in cache.properties.items()
        if value is not None
    }
    read, outputs = artifacts_of(store, last)
    inputs, before = what_counts(read, plain_properties(_that_ran(store, last)))
    report = _report_in(outputs) if ingests else None
    if report is not None:
        now_there = contents_of(window_of(cache.properties))
        yield from content_changes("file", report.contents, now_there)
        for properties in (before, now):
            for name in _DATA_PROPERTIES:
                properties.pop(name, None)
    yield from property_changes(before, now)
    yield from input_changes(inputs, cache.inputs)
    yield from package_changes(before, now)


def _plain(value: Any) -> Any:
    """Returns an exec property as ML Metadata has it."""
    stored = metadata_store_pb2.Value()
    data_types_utils.set_metadata_value(stored, value)
    return getattr(stored, stored.WhichOneof("value"))


def _that_ran(store: Any, execution: Any) -> Any:
    """Returns the execution that a cached one has its outputs from.

    Of a cached execution ML Metadata has no properties that its driver has set.
    """
    if execution.last_known_state == _COMPLETE:
        return execution
    same_key = [
        found
        for context in store.get_contexts_by_execution(execution.id)
        if context.type == "execution_cache"
        for found in store.get_executions_by_context(context.id)
        if found.last_known_state == _COMPLETE
    ]
    return max(same_key, key=lambda found: found.id, default=execution)


def _report_in(outputs: Artifacts) -> Report | None:
    """Returns the report of an ingestion, None where it is gone."""
    try:
        return Report.load(outputs["quarantine"][0].uri)
    except (OSError, ValueError, LookupError):
        return None
