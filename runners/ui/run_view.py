"""The page of one run: its nodes, curves, logs and verdict, while it runs and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from markupsafe import Markup

from reports import formats
from reports.read_run import RunData, last_pushed
from reports.run_page import SECTIONS, render_section
from reports.sections.run import build
from reports.sections.training import curves
from runners.local.follow_progress import progress_file
from runners.operations.find_run import FoundRun
from runners.operations.logs import START
from sluice import progress
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
    run = RunData(found.run_dir, replace(record, nodes=nodes))
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
        "elapsed": formats.seconds(since_s(record.started_at, record.ended_at)),
        "verdict": verdict,
        "nodes": [(node, remark(node)) for node in nodes],
        "timeline": section and section.timeline,
        "graph": section and section.graph,
        "charts": _drawn(run, partial(_curves, run, epochs)),
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
    return replace(node, duration_s=since_s(node.started_at, None))


def since_s(started_at: str, ended_at: str | None) -> float:
    """Returns the seconds between two times of a record; ``None`` is now."""
    end = datetime.fromisoformat(ended_at) if ended_at else datetime.now(timezone.utc)
    return max(0.0, (end - datetime.fromisoformat(started_at)).total_seconds())


def remark(node: NodeRecord) -> str:
    """Returns why a node is in its state, or how far it is."""
    return node.reason or ", ".join(formats.progress(node.progress or {}))


def _curves(run: RunData, epochs: EpochReports) -> list[tuple[str, Markup]]:
    """Returns title and chart of each metric; without a document, of the progress."""
    artifacts = run.artifacts("epochs")
    documented = {artifact["node"] for artifact in artifacts}
    for node in run.record.nodes:
        if node.id not in documented:
            reports = epochs.of(progress_file(run.run_dir, node.id))
            artifacts += [_as_artifact(reports)] if reports else []
    return [chart for artifact in artifacts for chart in curves(artifact)]


def _as_artifact(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns reports of epochs in the form of the record's document."""
    values = [report.get("metrics", {}) for report in reports]
    names = dict.fromkeys(name for item in values for name in item)
    speed = {"duration_s": None, "examples_per_second": None, "input_bound": None}
    return {
        "epochs": [report["epoch"] for report in reports],
        "metrics": {name: [item.get(name) for item in values] for name in names},
        "training": {"epochs": [{**speed, **report} for report in reports]},
    }


class EpochReports:
    """The last report of each epoch, by the file of a node's progress.

    Only what is new is read: a training of days reports often.
    """

    def __init__(self) -> None:
        self._read: dict[Path, tuple[int, dict[int, dict[str, Any]]]] = {}

    def of(self, path: Path) -> list[dict[str, Any]]:
        """Returns the reports by epoch, in order; a resumed training repeats some."""
        offset, known = self._read.get(path, (0, {}))
        lines, end = progress.read(path, offset)
        new = {line["epoch"]: line for line in lines if line.get("event") == "epoch"}
        known = {**known, **new}
        self._read[path] = end, known
        return [known[epoch] for epoch in sorted(known)]
