"""Section Run: the graph with states, a timeline, memory, cache reasons, logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

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
from sluice.record.run_record import REHEARSAL, RunRecord
from sluice.record.states import NODE_TONES

# Of larger graphs, such as those of a ForEach, the table alone is shown.
_MAX_GRAPH = 200
_MAX_NAME = 80
_MAX_REASON = 300
_START = "start"
_ENGINES = {"vertex": "Vertex AI", "kubeflow": "Kubeflow Pipelines"}
_NEVER_STARTED = ("not_reached", "skipped", "cached")


@dataclass(frozen=True)
class Log:
    """The end of a log."""

    name: str
    text: str
    is_open: bool


@dataclass(frozen=True)
class RunView:
    """What the section shows.

    Attributes:
      facts: name and text: times, workers, device.
      graph: SVG; None if it is too large, or the record has no nodes.
      timeline: SVG; None if no node has started.
      time: where the time went, a sentence.
      job_page: of the job of a service's run, in the service's console.
    """

    facts: list[tuple[str, str]]
    graph: Markup | None
    timeline: Markup | None
    time: str
    nodes: Table
    logs: list[Log]
    job_page: str | None


def build(run: RunData) -> RunView | None:
    """Returns the view; None for a run that was refused before it had a graph."""
    record = run.record
    names = [_START, *(node.id for node in record.nodes)]
    logs = [
        Log(name, text, record.error is not None and record.error.node == name)
        for name in names
        if (text := run.log_tail(name)).strip()
    ]
    if not record.nodes and not logs:
        return None
    spans = _spans(record)
    page = str(run.job.get("page") or "")
    start_is = "queue, graph" if run.job else "TFX import, graph"
    return RunView(
        facts=_facts(run),
        graph=_graph(record.nodes),
        timeline=_timeline(spans, start_is),
        time=_where_time_went(record, spans, start_is),
        nodes=_table(record.nodes),
        logs=logs,
        job_page=page if page.startswith(("https://", "http://")) else None,
    )


def _facts(run: RunData) -> list[tuple[str, str]]:
    record, job = run.record, run.job
    facts = []
    engine = (record.config.get("cloud") or {}).get("engine", "")
    service = _ENGINES.get(engine, "a service")
    if job:
        facts.append(("Engine", service))
        facts.append(("Job", str(job["name"])))
    elif REHEARSAL in record.tags:
        tag = record.tags[REHEARSAL]
        facts.append(("Engine", f"{service}, rehearsed on this machine: {tag}"))
    facts.append(("Started", formats.time(record.started_at)))
    facts += [("Resumed", formats.time(at)) for at in record.resumed_at]
    if record.ended_at:
        facts.append(("Ended", formats.time(record.ended_at)))
    if record.paused_s:
        facts.append(("Paused", formats.seconds(record.paused_s)))
    length = duration_s(record)
    if length is not None:
        facts.append(("Duration", formats.seconds(length)))
    for artifact in run.documents("epochs"):
        if training := artifact.get("training"):
            facts.append((f"{artifact['node']} ran on", training["strategy"]))
            if used := training.get("device_memory_peak_bytes"):
                facts.append(("Device memory", f"{formats.size(used)} at its peak"))
    return facts


def _graph(nodes: Sequence[NodeRecord]) -> Markup | None:
    names = {node.id: formats.shorten(node.id, _MAX_NAME) for node in nodes}
    if not 0 < len(set(names.values())) == len(nodes) <= _MAX_GRAPH:
        return None
    graph = [
        GraphNode(
            names[node.id],
            formats.shorten(node.kind, _MAX_NAME),
            # An event that a full disk has cut may leave out a node.
            tuple(names[upstream] for upstream in node.upstream if upstream in names),
            gate=node.kind in GATES,
        )
        for node in nodes
    ]
    states = {names[node.id]: node.state for node in nodes}
    return Markup(as_svg(graph, states, styled=False))


@dataclass(frozen=True)
class _Span:
    """When a node ran, in seconds since the run was started or resumed last."""

    node: NodeRecord
    start_s: float
    end_s: float


def _spans(record: RunRecord) -> list[_Span]:
    begin = datetime.fromisoformat([record.started_at, *record.resumed_at][-1])
    spans = []
    for node in record.nodes:
        if node.started_at is None or node.state in _NEVER_STARTED:
            continue
        start_s = (datetime.fromisoformat(node.started_at) - begin).total_seconds()
        # The start of a run is recorded to the second, that of a node more exactly.
        if start_s > -1:
            end_s = start_s + (node.duration_s or 0.0)
            spans.append(_Span(node, max(start_s, 0.0), end_s))
    return sorted(spans, key=lambda span: span.start_s)


def _timeline(spans: Sequence[_Span], start_is: str) -> Markup | None:
    if not spans:
        return None
    last_s = max(span.end_s for span in spans)
    first_s = spans[0].start_s
    note = f"{formats.seconds(first_s)}, {start_is}"
    bars = [Bar("start", 0.0, first_s, note, "quiet")]
    for span in spans:
        state, end_s = span.node.state, span.end_s
        note = state.replace("_", " ")
        if state == "ran":
            note = formats.seconds(span.node.duration_s)
        elif state == "running":
            end_s = last_s
        bars.append(Bar(span.node.id, span.start_s, end_s, note, NODE_TONES[state]))
    return timeline("When each node ran, since the run began", bars)


def _where_time_went(record: RunRecord, spans: Sequence[_Span], start_is: str) -> str:
    """Returns how much of the wall time the longest nodes and the start took."""
    if not spans:
        return ""
    total = max(span.end_s for span in spans)
    first = spans[0].start_s
    longest = sorted(spans, key=lambda span: span.start_s - span.end_s)[:3]
    parts = [
        f"{span.node.id} {formats.seconds(span.end_s - span.start_s)}"
        for span in longest
        if span.end_s > span.start_s
    ]
    begun = "the resume" if record.resumed_at else "the start"
    after = f"{formats.seconds(first)} after {begun} ({start_is})"
    text = f"The first node started {after}"
    if parts:
        text += f"; the longest nodes are {', '.join(parts)}"
    busy = sum(span.end_s - span.start_s for span in spans)
    if total > first:
        text += f"; {busy / (total - first):.1f} nodes ran at once on average"
    return f"{text}."


def _table(nodes: Sequence[NodeRecord]) -> Table:
    return Table(
        id="nodes",
        caption="Nodes",
        header=(
            "Node",
            "State",
            numbers("Time", format=formats.seconds, bar=True),
            numbers("Peak memory", format=formats.size, bar=True),
            numbers("Attempts"),
            "Why",
        ),
        rows=[
            (
                node.id
                if node.kind in ("", node.id)
                else Markup('{} <span class="muted small">{}</span>').format(
                    formats.shorten(node.id, 200), formats.shorten(node.kind, 100)
                ),
                Mark(NODE_TONES[node.state], node.state.replace("_", " ")),
                node.duration_s if node.attempts or node.duration_s else None,
                node.peak_memory_bytes,
                node.attempts,
                formats.shorten(node.reason or "", _MAX_REASON),
            )
            for node in nodes
        ],
    )
