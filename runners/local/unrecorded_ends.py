"""Reads how the nodes of a killed run ended, from what their processes have written.

Only the local engine leaves something to read: a graph file, results and executions in
ML Metadata. For the run of any other engine there is nothing, and nothing is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from runners.local.job_result import read_result
from sluice.record.events import NodeFinished
from sluice.record.run_record import RunRecord


def unrecorded_ends(
    record: RunRecord, run_dir: Path, only: str | None = None
) -> Iterator[NodeFinished]:
    """Yields an event for each node that had ended but is recorded as running.

    Closes the executions in ML Metadata that were left open.
    """
    # ML Metadata's client, which is rarely needed here.
    from runners.local.graph_file import GraphFile
    from runners.local.node_event import node_finished
    from runners.local.read_node_result import read_node_result
    from runners.local.scheduler import result_of
    from runners.metadata.read_metadata import open_store

    running = [
        node.id
        for node in record.nodes
        if node.state == "running" and only in (None, node.id)
    ]
    graph = GraphFile.load(run_dir)
    if graph is None or not running:
        return
    for node in graph.nodes:
        if node.id not in running:
            continue
        facts = read_result(run_dir, node.id) or {}
        with open_store(graph.connection_config()) as store:
            result = read_node_result(
                store, node, facts.get("duration_s", 0.0), None, stopped=True
            )
        if facts and facts["state"] == "failed":
            result = result_of(facts)
        if result.state in ("ran", "cached", "failed"):
            yield node_finished(run_dir, node, result, facts)
