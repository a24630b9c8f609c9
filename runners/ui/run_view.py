"""The page of one run: its nodes, curves, logs and verdict, while it runs and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import Any, TypeVar

from markupsafe import Markup

from reports import formats
from reports.epoch_reports import EpochReports
from reports.read_run import RunData, last_pushed
from reports.run_page import SECTIONS, render_section
from reports.run_values import duration_s
from reports.sections.run import build
from reports.sections.training import curves
from runners.operations.find_run import FoundRun
from runners.operations.logs import START
from sluice.record.run_record import NodeRecord

Drawn = TypeVar("Drawn")
_VERDICT = next(item for item in SECTIONS if item.name == "verdict")


def run_values(
    found: FoundRun, log: str | None, epochs: EpochReports
) -> dict[str, Any]:
    """Returns the values of the template ``run_live.html.j2``.

    Args:
      found: the run.
      log: the node whose log is shown; None for the one that started last.
      epochs: the reports of running trainings.
    """
    record = found.record
    nodes = [_with_duration(node) for node in record.nodes]
    run = RunData(found.run_dir, replace(record, nodes=nodes), epoch_reports=epochs)
    section = _drawn(run, partial(build, run))
    verdict = None
    if record.status != "running":
        run.previous = last_pushed(run)
        verdict = render_section(run, _VERDICT)
    logs = [START, *(node.id for node in record.nodes)]
    logs = [name for name in logs if run.log_tail(name).strip()]
    shown = log if log and log in logs else _latest(record.nodes, logs)
    return {
        "record": record,
        "elapsed": formats.seconds(duration_s(record, now_utc())),
        "verdict": verdict,
        "nodes": [(node, remark(node)) for node in nodes],
        "timeline": section and section.timeline,
        "graph": section and section.graph,
        "charts": _drawn(run, partial(_curves, run)),
        "logs": logs,
        "log": shown,
        "log_text": run.log_tail(shown) if shown else "",
        "notices": run.notices,
    }


def _drawn(run: RunData, draw: Callable[[], Drawn]) -> Drawn | None:
    """Returns what is drawn, or adds a notice: a document may be damaged in any way."""
    try:
        return draw()
    except Exception as error:
        text = f"a part cannot be drawn: {type(error).__name__}: {error}"
        run.notices.append(formats.shorten(text, 500))
        return None


def _latest(nodes: Sequence[NodeRecord], logs: list[str]) -> str | None:
    """Returns the log to show: of the node that failed or, else, started last."""
    with_log = [node for node in nodes if node.id in logs and node.started_at]
    failed = [node for node in with_log if node.state == "failed"]
    started = failed or sorted(with_log, key=lambda node: node.started_at or "")
    return started[-1].id if started else logs[0] if logs else None


def _with_duration(node: NodeRecord) -> NodeRecord:
    """Returns a node with the time so far if it is running."""
    if node.state != "running" or node.started_at is None:
        return node
    so_far = now_utc() - datetime.fromisoformat(node.started_at)
    return replace(node, duration_s=max(0.0, so_far.total_seconds()))


def now_utc() -> datetime:
    """Returns the time, for durations of what is in progress."""
    return datetime.now(timezone.utc)


def remark(node: NodeRecord) -> str:
    """Returns why a node is in its state, or how far it is."""
    return node.reason or ", ".join(formats.progress(node.progress or {}))


def _curves(run: RunData) -> list[tuple[str, Markup]]:
    return [chart for artifact in run.epochs() for chart in curves(artifact)]
