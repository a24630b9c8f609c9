"""Section Run: the graph with states, a timeline, memory, cache reasons, logs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from markupsafe import Markup

from reports import formats
from reports.charts.timeline import Bar, timeline
from reports.graph import GraphNode
from reports.graph_svg import as_svg
from reports.read_run import RunData
from reports.run_values import duration_s
from reports.tables import Mark, Table, numbers
from sluice.node_kinds import GATES
from sluice.record.parts import NodeRecord
from sluice.record.run_record import RunRecord
from sluice.record.states import NODE_TONES

# Of larger graphs, such as those of a ForEach, the table alone is shown.
_MAX_GRAPH = 200
_MAX_NAME = 80
_ENGINES = {"vertex": "Vertex AI", "kubeflow": "Kubeflow Pipelines"}
_NEVER_STARTED = ("not_reached", "skipped", "cached")


def build(run: RunData) -> dict[str, Any] | None:
    """Returns the view; None for a run that was refused before it had a graph."""
    record = run.record
    names = ["start", *(node.id for node in record.nodes)]
    logs = {name: text for name in names if (text := run.log_tail(name)).strip()}
    if not record.nodes and not logs:
        return None
    page = str(run.job.get("page") or "")
    start_is = "queue, graph" if run.job else "TFX import, graph"
    return {
        "service": _ENGINES.get((record.config.get("cloud") or {}).get("engine", "")),
        "job": run.job,
        "duration_s": duration_s(record),
        "trainings": [x for x in run.documents("epochs") if x.get("training")],
        "graph": _graph(record.nodes),
        "timeline": _timeline(record, start_is),
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
    return Markup(as_svg(graph, states, styled=False))


def _timeline(record: RunRecord, start_is: str) -> Markup | None:
    """Returns when nodes ran since the run was started, or resumed last."""
    begin = datetime.fromisoformat([record.started_at, *record.resumed_at][-1])
    bars = []
    for node in record.nodes:
        if node.started_at is None or node.state in _NEVER_STARTED:
            continue
        start_s = (datetime.fromisoformat(node.started_at) - begin).total_seconds()
        # The start of a run is recorded to the second, that of a node more exactly.
        if start_s > -1:
            note = node.state.replace("_", " ")
            note = formats.seconds(node.duration_s) if node.state == "ran" else note
            times = max(start_s, 0.0), start_s + (node.duration_s or 0.0)
            bars.append(Bar(node.id, *times, note, NODE_TONES[node.state]))
    if not bars:
        return None
    bars.sort(key=lambda bar: bar.start_s)
    first_s = bars[0].start_s
    bars.insert(
        0,
        Bar("start", 0.0, first_s, f"{formats.seconds(first_s)}, {start_is}", "quiet"),
    )
    return timeline("When each node ran, since the run began", bars)


def _table(nodes: Sequence[NodeRecord]) -> Table:
    time = numbers("Time", format=formats.seconds, bar=True)
    memory = numbers("Peak memory", format=formats.size, bar=True)
    kind = Markup('{} <span class="muted small">{}</span>')
    rows = [
        (
            node.id
            if node.kind in ("", node.id)
            else kind.format(
                formats.shorten(node.id, 200), formats.shorten(node.kind, 100)
            ),
            Mark(NODE_TONES[node.state], node.state.replace("_", " ")),
            node.duration_s if node.attempts or node.duration_s else None,
            node.peak_memory_bytes,
            node.attempts,
            formats.shorten(node.reason or "", 300),
        )
        for node in nodes
    ]
    header = ("Node", "State", time, memory, numbers("Attempts"), "Why")
    return Table("nodes", "Nodes", header, rows)
