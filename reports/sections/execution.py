"""Sections Run, Serving and Provenance.

The graph with states, times, memory, cache reasons and logs; what was pushed, and what
it was made of.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from reports import formats
from reports.draw_graph import GraphNode, as_svg
from reports.read_run import RunData
from reports.tables import Mark, Table, numbers
from sluice.json_values import flatten
from sluice.node_kinds import GATES
from sluice.record.outcome import duration_s
from sluice.record.parts import NodeRecord
from sluice.record.states import NODE_TONES

# Larger graphs, such as those of a ForEach, are shown as a table alone.
_MAX_GRAPH = 200
_MAX_NAME = 80
_ENGINES = {"vertex": "Vertex AI", "kubeflow": "Kubeflow Pipelines"}


def build(run: RunData) -> dict[str, Any] | None:
    """Returns the view; None for a run that was refused before it had a graph."""
    record = run.record
    names = ["start", *(node.id for node in record.nodes)]
    logs = {name: text for name in names if (text := run.log_tail(name)).strip()}
    if not record.nodes and not logs:
        return None
    page = str(run.job.get("page") or "")
    return {
        "service": _ENGINES.get((record.config.get("cloud") or {}).get("engine", "")),
        "job": run.job,
        "duration_s": duration_s(record),
        "graph": _graph(record.nodes),
        "nodes": _table(record.nodes),
        "logs": logs,
        "job_page": page if page.startswith(("https://", "http://")) else None,
    }


def _graph(nodes: Sequence[NodeRecord]) -> Markup | None:
    names = {node.id: formats.shorten(node.id, _MAX_NAME) for node in nodes}
    if not 0 < len(set(names.values())) == len(nodes) <= _MAX_GRAPH:
        return None
    graph = [
        GraphNode(
            names[node.id],
            formats.shorten(node.kind, _MAX_NAME),
            tuple(names[upstream] for upstream in node.upstream if upstream in names),
            gate=node.kind in GATES,
        )
        for node in nodes
    ]
    states = {names[node.id]: node.state for node in nodes}
    return as_svg(graph, states)


def _table(nodes: Sequence[NodeRecord]) -> Table:
    time = numbers("Time", format=formats.seconds, bar=True)
    memory = numbers("Peak memory", format=formats.size, bar=True)
    rows = [
        (
            formats.shorten(node.id, 200),
            Mark(NODE_TONES[node.state], formats.state(node.state)),
            node.duration_s if node.attempts or node.duration_s else None,
            node.peak_memory_bytes,
            formats.shorten(node.reason or "", 300),
        )
        for node in nodes
    ]
    header = ("Node", "State", time, memory, "Why")
    return Table("nodes", "Nodes", header, rows)


def provenance(run: RunData) -> dict[str, Any]:
    """Returns what the template shows; every run has this section."""
    config = flatten(run.record.config)
    return {
        # That of the Pusher, if there is one: the model and what was pushed.
        "lineage": next(reversed(run.documents("lineage")), None),
        "config": [
            (key, json.dumps(value, ensure_ascii=False))
            for key, value in config.items()
        ],
        "packages": [item for item in run.record.packages.items() if item[1]],
    }


def serving(run: RunData) -> dict[str, Any] | None:
    """Returns what the section Serving shows; None without a model and a push."""
    models = run.documents("model")
    pushed = [push for push in run.record.pushes if push.version is not None]
    if not models and not pushed:
        return None
    served = [item for found in run.documents("lineage") for item in found["served"]]
    return {
        "pushed": pushed,
        # A pipeline with a tuner or warm start has several models; the last is trained.
        "model": models[-1] if models else None,
        "served": [*{item["version"]: item for item in served}.values()],
    }
