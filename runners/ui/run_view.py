"""Runs in the browser: the page of one, live or not, its pipeline's card, tables."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from markupsafe import Markup

from reports import formats
from reports.metric_changes import metric_changes, worse_metrics
from reports.read_run import RunData, is_error, last_pushed, without_library_lines
from reports.run_index import make_index
from reports.run_page import render_section
from reports.sections.execution import build
from reports.sections.training import curves
from reports.tables import Mark
from runners.operations.find_run import FoundRun, read_record
from serving.model_store import store_at
from sluice.errors import SluiceError
from sluice.record.outcome import duration_s, next_steps, outcome, summarize
from sluice.record.parts import NodeRecord
from sluice.record.run_record import RunRecord
from sluice.storage.storage import is_remote
from sluice.workspace import Workspace

# The end of a log is shown; the whole of it has a page of its own.
_LOG_BYTES = 100_000
Drawn = TypeVar("Drawn")


def run_values(shown_run: FoundRun, log: str | None) -> dict[str, Any]:
    """Returns the values of the template ``run_live.html.j2``.

    Args:
      shown_run: the run.
      log: the node whose log is shown; None for one that runs or has failed.
    """
    record = shown_run.record
    nodes = [_with_duration(node) for node in record.nodes]
    run = RunData(shown_run.run_dir, replace(record, nodes=nodes))
    section = drawn(run, build)
    verdict = None
    if record.status != "running":
        run.previous = last_pushed(run)
        verdict = render_section(run, "verdict")
    logs = [name for name, path in log_files(shown_run).items() if path.stat().st_size]
    states = {node.id: node.state for node in nodes}
    if log not in logs:
        busy = [name for name in logs if states.get(name) in ("failed", "running")]
        log = next(iter(busy[-1:] or logs[-1:]), None)
    shown = without_library_lines(run.log_end(log, _LOG_BYTES) if log else "")
    # A run that has failed before its first node has done so in ``start``.
    has_failed = states.get(log or "", record.status) == "failed"
    training = shown_run.workspace.artifacts / "Trainer"
    return {
        "record": record,
        "elapsed": formats.seconds(duration_s(record, now_utc())),
        "verdict": verdict,
        # Of one that has ended they are in the verdict.
        "steps": next_steps(record) if verdict is None else (),
        "nodes": [(node, remark(node)) for node in nodes],
        "graph": section and section["graph"],
        "charts": drawn(run, _curves),
        "tensorboard": shlex.quote(str(training)) if training.is_dir() else None,
        "logs": logs,
        "log": log,
        "log_lines": [(x, has_failed and is_error(x)) for x in shown.splitlines()],
        "notices": run.notices,
    }


def drawn(run: RunData, draw: Callable[[RunData], Drawn]) -> Drawn | None:
    """Returns what is drawn, or adds a notice: a document may be damaged in any way."""
    try:
        return draw(run)
    except Exception as error:
        text = f"a part cannot be drawn: {type(error).__name__}: {error}"
        run.notices.append(formats.shorten(text, 500))
        return None


def _curves(run: RunData) -> list[tuple[str, Markup]]:
    return [chart for artifact in run.epochs() for chart in curves(artifact)]


def log_files(found: FoundRun) -> dict[str, Path]:
    """Returns the logs by node, in the order of the graph; the others come first."""
    paths = (found.run_dir / "logs").glob("*.log")
    order = [node.id for node in found.record.nodes]
    names = {path.stem: path for path in paths}
    first = {name: names[name] for name in sorted(names) if name not in order}
    return first | {name: names[name] for name in order if name in names}


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


def pipeline_card(found: FoundRun) -> dict[str, Any]:
    """Returns the values of a card of ``pipelines.html.j2``, from the last run."""
    record = found.record
    moved = drawn(RunData(found.run_dir, record), metric_changes)
    tone, headline, causes = summarize(record, worse_metrics(moved or ()))
    served, unknown = None, ""
    place = record.pushes[0].destination if record.pushes else ""
    if is_remote(place):
        # It would have to be asked every second.
        unknown = f"it is in {place}"
    elif place:
        try:
            served = _served(found.workspace, place)
        except SluiceError as error:
            unknown = error.what
    return {
        "name": found.name,
        "url": pipeline_url(found.name),
        "run_url": run_url(found),
        "record": record,
        "outcome": Mark(tone, outcome(record)),
        "duration_s": duration_s(record, now_utc()),
        "headline": headline,
        "causes": causes or [_remark(record)],
        "served": served,
        "unknown": unknown,
    }


def _remark(record: RunRecord) -> str:
    """Returns what a run does now."""
    running = [node for node in record.nodes if node.state == "running"]
    return "; ".join(f"{node.id} {remark(node)}".rstrip() for node in running)


def _served(workspace: Workspace, place: str) -> dict[str, Any] | None:
    """Returns the version that a server loads; None if there is none."""
    newest = store_at(place).newest()
    if newest is None:
        return None
    run_id = str(newest.facts.get("pipeline_run_id"))
    is_known = run_id in workspace.run_ids()
    rows = read_record(workspace, run_id).gate_rows("model") if is_known else []
    return {
        "version": newest.version,
        "since": newest.published_at,
        "note": f"retired: {newest.retired}" if newest.retired else newest.rollback,
        "row": next((row for row in rows if row.compared is not None), None),
    }


def pipeline_url(name: str) -> str:
    """Returns the address of a pipeline's page."""
    return f"/pipelines/{quote(name, safe='')}"


def run_url(found: FoundRun) -> str:
    """Returns the address of a run's page, a folder as the run's own."""
    return f"{pipeline_url(found.name)}/runs/{quote(found.record.run_id, safe='')}/"


def run_index(runs: Sequence[FoundRun]) -> dict[str, Any]:
    """Returns table and trends of a pipeline's runs."""
    urls = {item.record.run_id: run_url(item) for item in runs}
    data = [RunData(item.run_dir, item.record) for item in runs]
    return make_index(data, lambda run: urls[run.record.run_id])
