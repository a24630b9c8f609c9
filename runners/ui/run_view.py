"""The page of one run: its nodes, curves, logs and verdict, while it runs and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from markupsafe import Markup

from reports.charts.lines import Series, line_chart
from reports.charts.scale import Axis
from reports.formats import number, seconds
from reports.read_run import RunData
from reports.run_page import SECTIONS, render_section
from runners.local.follow_progress import progress_file
from runners.operations.find_run import FoundRun
from runners.operations.logs import START
from sluice import progress
from sluice.record.run_record import NodeRecord

_VALIDATION = "val_"


def run_values(found: FoundRun, log: str | None) -> dict[str, Any]:
    """Returns the values of the template ``run.html.j2``.

    Args:
      found: the run.
      log: the node whose log is shown; None for the one that started last.
    """
    record = found.record
    run = RunData(found.run_dir, record)
    (verdict,) = [section for section in SECTIONS if section.name == "verdict"]
    logs = [START, *(node.id for node in record.nodes)]
    logs = [name for name in logs if (found.run_dir / "logs" / f"{name}.log").exists()]
    shown = log if log and log in logs else _latest(record.nodes, logs)
    return {
        "record": record,
        "elapsed": seconds(since_s(record.started_at, record.ended_at)),
        "verdict": render_section(run, verdict),
        "nodes": [(node, _duration(node), _remark(node)) for node in record.nodes],
        "charts": [
            chart for node in record.nodes for chart in _curves(found, run, node)
        ],
        "logs": logs,
        "log": shown,
        "log_text": run.log_tail(shown) if shown else "",
        "notices": run.notices,
    }


def _latest(nodes: Sequence[NodeRecord], logs: list[str]) -> str | None:
    """Returns the log to show: of the node that failed or, else, started last."""
    with_log = [node for node in nodes if node.id in logs and node.started_at]
    failed = [node for node in with_log if node.state == "failed"]
    started = failed or sorted(with_log, key=lambda node: node.started_at or "")
    return started[-1].id if started else logs[0] if logs else None


def _duration(node: NodeRecord) -> str:
    if node.state == "running" and node.started_at:
        return seconds(since_s(node.started_at, None))
    return seconds(node.duration_s) if node.duration_s else ""


def since_s(started_at: str, ended_at: str | None) -> float:
    """Returns the seconds between two times of a record; ``None`` is now."""
    end = datetime.fromisoformat(ended_at) if ended_at else datetime.now(timezone.utc)
    return max(0.0, (end - datetime.fromisoformat(started_at)).total_seconds())


def _remark(node: NodeRecord) -> str:
    """Returns why a node is in its state, or how far it is."""
    return node.reason or describe_progress(node.progress or {})


def describe_progress(facts: Mapping[str, Any]) -> str:
    """Returns a progress report as one line; empty if there is nothing to show."""
    if facts.get("event") not in ("epoch", "step"):
        return str(facts.get("line") or "")
    parts = [f"epoch {facts['epoch']} of {facts['epochs']}"]
    if facts["event"] == "step":
        parts.append(f"step {facts['step']} of {facts['steps']}")
    if "examples_per_second" in facts:
        parts.append(f"{facts['examples_per_second']:,.0f} examples/s")
    if facts.get("eta_s"):
        parts.append(f"at most {seconds(facts['eta_s'])} left")
    return ", ".join(parts)


def _curves(
    found: FoundRun, run: RunData, node: NodeRecord
) -> list[tuple[str, Markup]]:
    """Returns a chart per metric of a training: of train and eval data, by epoch.

    Until the node ends they are drawn from its progress reports.
    """
    epochs: Sequence[int] = []
    metrics: dict[str, Sequence[Any]] = {}
    for artifact in run.artifacts("epochs"):
        if artifact["node"] == node.id:
            epochs, metrics = artifact["epochs"], artifact["metrics"]
    if not metrics:
        lines, _ = progress.read(progress_file(found.run_dir, node.id))
        # A resumed training reports an epoch again.
        reports = {
            line["epoch"]: line.get("metrics", {})
            for line in lines
            if line.get("event") == "epoch"
        }
        epochs = sorted(reports)
        names = dict.fromkeys(name for item in reports.values() for name in item)
        metrics = {name: [reports[at].get(name) for at in epochs] for name in names}
    charts = []
    for name in metrics:
        if name.startswith(_VALIDATION):
            continue
        pair = [("train", metrics[name]), ("eval", metrics.get(_VALIDATION + name))]
        series = [
            Series(label, epochs, values, style)
            for style, (label, values) in enumerate(pair)
            if values is not None
        ]
        last = ", ".join(f"{item.name} {number(item.y[-1])}" for item in series)
        title = f"{name} of {node.id} by epoch: {last}"
        axis = Axis("epoch", whole=True)
        charts.append((title, line_chart(title, series, axis, Axis(name))))
    return charts
