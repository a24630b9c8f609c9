"""Section Verdict: was a model pushed, which gate and row decided, what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, get_args

from reports.compare import compare, summarize_changes
from reports.evaluation import OVERALL
from reports.metric_changes import SliceMetric, metric_changes, worse_metrics
from reports.read_run import RunData
from reports.tables import Header, Table, numbers
from sluice.record.outcome import (
    command_for,
    duration_s,
    failed_sections,
    next_steps,
    overrides,
    summarize,
)
from sluice.record.verdict import Check, Result
from sluice.splits import SERVING

_RESULTS = get_args(Result)
# Kinds of changes that are shown otherwise than as a line.
_DRAWN = ("features", "metrics", "predictions")


def build(run: RunData) -> dict[str, Any]:
    """Returns what the template shows; every run has this section."""
    record = run.record
    changes = _guarded(run)
    moved = changes.get("moved", [])
    tone, headline, causes = summarize(record, worse_metrics(moved))
    return {
        "tone": tone,
        "headline": headline,
        "causes": causes,
        "judged": _judged(record.gate_rows("model")),
        "records": sum(
            count
            for document in run.documents("ingestion")
            for split, count in (document.get("splits") or {}).items()
            if split != SERVING
        ),
        "duration_s": duration_s(record),
        "gates": [
            (item, sorted(item.rows, key=lambda row: _RESULTS.index(row.result)))
            for item in record.gates
        ],
        "failed": sorted(failed_sections(record) - {"run"}),
        "steps": next_steps(record),
        "overrides": overrides(record),
        "metrics": _metrics(moved) if moved else None,
        "since": changes.get("since"),
    }


def _judged(rows: Iterable[Check]) -> list[Check]:
    """Returns the check of all examples, and the slice that is closest to its limit."""
    rows = [row for row in rows if row.compared is not None]
    overall = [row for row in rows if row.slice == OVERALL]
    slices = [row for row in rows if row.slice != OVERALL]
    slices.sort(key=lambda row: (row.passed, row.margin or 0.0))
    return [*overall[:1], *slices[:1], *overall[1:2]][:2]


def _guarded(run: RunData) -> dict[str, Any]:
    """Returns what has changed, or adds a notice: the verdict is shown anyway."""
    try:
        return {
            "moved": metric_changes(run),
            "since": run.previous and _since(run, run.previous),
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        before = f"run {run.previous.record.run_id}" if run.previous else "the baseline"
        run.notices.append(
            f"what has changed since {before} is not known: a document is damaged: "
            f"{type(error).__name__}: {error}"
        )
        return {}


def _since(run: RunData, previous: RunData) -> dict[str, Any]:
    """Returns the config and code that differ from the last run that pushed."""
    record = previous.record
    lines = [x.split(": ", 1) for x in summarize_changes(compare(previous, run))]
    return {
        "record": record,
        "summary": [line for line in lines if line[0] not in _DRAWN],
        "diff": command_for(run.record, "diff", record.run_id, run.record.run_id),
    }


def _metrics(moved: Sequence[SliceMetric]) -> Table:
    """Returns the metrics of all examples, and those of slices that have moved."""
    header: Header = ["Metric", "Slice", numbers("Change"), numbers("Baseline")]
    header += [numbers("Candidate"), numbers("Examples")]
    rows = [
        [x.metric, x.slice, x.change, x.before, x.shown, x.examples]
        for x in moved
        if x.outcome in ("worse", "better") or x.slice == OVERALL
    ]
    caption = "Metrics against the baseline, the most harmful change first"
    return Table("moved", caption, header, rows, limit=8)
