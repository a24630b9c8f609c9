"""Sections Run, Serving and Provenance.

The graph with states, a timeline, memory, cache reasons and logs; what was pushed, and
what it was made of.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from markupsafe import Markup

from reports import formats
from reports.charts.svg import CHAR_WIDTH, Axis, image, is_finite, make_scale, tag
from reports.draw_graph import GraphNode, as_svg
from reports.read_run import RunData
from reports.tables import Mark, Table, numbers
from sluice.json_values import flatten
from sluice.node_kinds import GATES
from sluice.record.outcome import duration_s
from sluice.record.parts import NodeRecord
from sluice.record.run_record import RunRecord
from sluice.record.states import NODE_TONES

# Larger graphs, such as those of a ForEach, are shown as a table alone.
_MAX_GRAPH = 200
_MAX_NAME = 80
_ENGINES = {"vertex": "Vertex AI", "kubeflow": "Kubeflow Pipelines"}
_NEVER_STARTED = ("not_reached", "skipped", "cached")

_WIDTH = 720.0
_ROW = 22.0
_AXIS_HEIGHT = 24.0
_NAME_CHARS = 26
# Units of the axis by their seconds.
_UNITS = {3600: "h", 60: "min", 1: "s"}


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
            note = formats.state(node.state)
            note = formats.seconds(node.duration_s) if node.state == "ran" else note
            times = max(start_s, 0.0), start_s + (node.duration_s or 0.0)
            bars.append(Bar(node.id, *times, note, NODE_TONES[node.state]))
    if not bars:
        return None
    bars.sort(key=lambda bar: bar.start_s)
    first_s = bars[0].start_s
    note = f"{formats.seconds(first_s)}, {start_is}"
    bars.insert(0, Bar("start", 0.0, first_s, note, "quiet"))
    return timeline("When each node ran, since the run began", bars)


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


class Bar(NamedTuple):
    """One row: a name, start and end since the beginning, a note, a CSS class."""

    name: str
    start_s: float
    end_s: float
    note: str = ""
    tone: str = ""


def timeline(title: str, bars: Sequence[Bar]) -> Markup:
    """Returns a bar for each row over a common axis of time, in the given order."""
    bars = [bar for bar in bars if is_finite(bar.start_s) and is_finite(bar.end_s)]
    longest = max((min(len(bar.name), _NAME_CHARS) for bar in bars), default=0)
    left, bottom = longest * CHAR_WIDTH + 14, _AXIS_HEIGHT + len(bars) * _ROW
    total = max((bar.end_s for bar in bars), default=0.0)
    unit = next((unit for unit in _UNITS if total >= 2 * unit), 1)
    axis, ends = Axis(low=0.0), [bar.end_s / unit for bar in bars]
    scale = make_scale(axis, ends, left, _WIDTH - 12.0)
    parts = []
    for value, label in zip(scale.places, scale.labels, strict=True):
        x = scale.at(value)
        line = {"x1": x, "x2": x, "y1": _AXIS_HEIGHT - 6, "y2": bottom}
        parts.append(tag("line", class_="grid", **line))
        anchor = "end" if x + 30 > _WIDTH else "middle" if value else "start"
        text = f"{label} {_UNITS[unit]}"
        parts.append(tag("text", text, x=x, y=12.0, text_anchor=anchor))
    for i, bar in enumerate(bars):
        y = _AXIS_HEIGHT + i * _ROW
        start, end = scale.at(bar.start_s / unit), scale.at(bar.end_s / unit)
        name = formats.shorten(bar.name, _NAME_CHARS)
        times = f"{formats.seconds(bar.start_s)} to {formats.seconds(bar.end_s)}"
        size = {"width": max(end - start, 2.0), "height": _ROW - 8, "rx": 2}
        note = formats.shorten(bar.note, 30)
        is_inside = end + 6 + len(note) * CHAR_WIDTH > _WIDTH
        x, anchor = (start - 5, "end") if is_inside else (end + 5, "start")
        row = (
            tag("title", f"{bar.name}: {times} {bar.note}"),
            tag("text", name, x=left - 6, y=y + 14, text_anchor="end"),
            tag("rect", x=start, y=y + 4, **size),
            tag("text", note, class_="note", y=y + 14, x=x, text_anchor=anchor),
        )
        parts.append(tag("g", *row, class_=f"row {bar.tone}".strip()))
    summary = "; ".join(f"{bar.name} {bar.note}".strip() for bar in bars[:30])
    return image(_WIDTH, bottom + 4, title, summary or "nothing ran", *parts)


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
