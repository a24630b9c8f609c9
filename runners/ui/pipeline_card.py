"""A pipeline on the first page: what is served, and how its last run has ended."""

from __future__ import annotations

from typing import Any

from reports.metric_changes import metric_changes, worse_metrics
from reports.read_run import RunData, last_pushed
from reports.tables import Mark
from runners.operations.find_run import FoundRun, read_record
from runners.ui.actions import Action
from runners.ui.run_view import drawn, now_utc, remark
from runners.ui.tables import pipeline_url, run_url
from serving.model_store import store_at
from sluice.errors import SluiceError
from sluice.record.outcome import duration_s, outcome, summarize
from sluice.record.run_record import RunRecord
from sluice.storage.storage import is_remote


def pipeline_card(found: FoundRun, actions: list[Action]) -> dict[str, Any]:
    """Returns the values of a card of the template ``pipelines.html.j2``.

    Args:
      found: the last run.
      actions: its buttons.
    """
    record = found.record
    moved = drawn(RunData(found.run_dir, record), metric_changes)
    tone, headline, causes = summarize(record, worse_metrics(moved or ()))
    served, unknown = None, ""
    try:
        served = _served(found)
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
        "actions": actions,
    }


def _remark(record: RunRecord) -> str:
    """Returns what a run does now."""
    running = [node for node in record.nodes if node.state == "running"]
    return "; ".join(f"{node.id} {remark(node)}".rstrip() for node in running)


def _served(found: FoundRun) -> dict[str, Any] | None:
    """Returns the version that a server loads; None if there is none.

    It is asked of a directory. Of a bucket, which would have to be asked every second,
    it is what the records say.
    """
    record = found.record
    if not record.pushes:
        return None
    destination = record.pushes[0].destination
    if is_remote(destination):
        run = RunData(found.run_dir, record)
        pushed = run if record.has_pushed else last_pushed(run)
        if pushed is None:
            return None
        by = pushed.record
        return _version(by.pushes[0].version, by.ended_at, by)
    newest = store_at(destination).newest()
    if newest is None:
        return None
    run_id = newest.facts.get("pipeline_run_id")
    is_known = run_id in found.workspace.run_ids()
    pusher = read_record(found.workspace, str(run_id)) if is_known else None
    version = _version(newest.version, newest.published_at, pusher)
    return {**version, "retired": newest.retired}


def _version(
    version: int | None, since: str | None, by: RunRecord | None
) -> dict[str, Any]:
    rows = by.gate_rows("model") if by else []
    judged = (row for row in rows if row.compared is not None)
    return {"version": version, "since": since, "row": next(judged, None)}
