"""Values of a run for tables: outcome, duration, parameters, examples and metrics.

All come from the record and its documents. A value that the record lacks, as that of an
older version or of a run that has failed, is missing or None.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from reports.evaluation import PER_CLASS, read_metrics
from reports.feature_statistics import statistics
from reports.read_run import RunData
from sluice.metric_names import direction_of, result_name
from sluice.record.run_record import RunRecord

# Metrics that have no meaning where all examples are of one class.
_OF_CLASSES = re.compile(r"auc|precision|recall|f1|roc")

Better = Literal["higher", "lower"]


def outcome(record: RunRecord) -> str:
    """Returns the verdict on a run in a few words, such as ``pushed``."""
    states = [push.state for push in record.pushes]
    if record.status == "blocked":
        failed = [gate["gate"] for gate in record.gates if not gate["passed"]]
        return f"blocked ({failed[0]} gate)" if failed else "blocked"
    if record.status not in ("succeeded", "up_to_date"):
        return record.status
    if "pushed" in states:
        return "pushed"
    if record.status == "up_to_date":
        return "up to date"
    return "already served" if "already_served" in states else "not pushed"


def version(record: RunRecord) -> int | None:
    """Returns the version under which the run's model is served."""
    found = (push.version for push in record.pushes if push.version is not None)
    return next(found, None)


def duration_s(record: RunRecord, now: datetime | None = None) -> float | None:
    """Returns the wall time from start to end, without the pauses before resumes.

    Args:
      record: of the run.
      now: the end of a run in progress.

    Returns:
      None for a run without an end, such as one that was killed.
    """
    try:
        if record.status == "running" and now is not None:
            ended = now
        else:
            ended = datetime.fromisoformat(record.ended_at or "")
        begun = datetime.fromisoformat(record.started_at)
        return max(0.0, (ended - begun).total_seconds() - record.paused_s)
    except (ValueError, TypeError):
        return None


def run_facts(record: RunRecord) -> dict[str, Any]:
    """Returns what tables and comparisons say of a run."""
    names = ("run_id", "pipeline", "started_at", "status", "exit_code", "tags")
    return {
        **{name: getattr(record, name) for name in names},
        "outcome": outcome(record),
        "version": version(record),
        "duration_s": duration_s(record),
    }


def examples(run: RunData) -> dict[str, int]:
    """Returns the number of examples per split of the data that is trained on.

    They are those that were ingested, or of a foreign pipeline those of the statistics.
    Splits of further statistics, such as of serving requests, are named after the node
    too.
    """
    found: dict[str, int] = {}
    for artifact in run.documents("ingestion"):
        for name, split in artifact["splits"].items():
            found.setdefault(name, split["records"])
    if not found:
        for node, name, count, _ in statistics(run):
            found[f"{node}: {name}" if name in found else name] = count
    return found


def metrics(run: RunData) -> dict[tuple[str, str], float]:
    """Returns the candidate's metrics by slice and name, all examples first.

    A metric of one class or output is named like ``precision (class_id 3)``. Arrays,
    tables, and metrics that could not be computed or measured are left out.
    """
    found: dict[tuple[str, str], float] = {}
    for document in run.documents("metrics"):
        items = [
            item
            for item in read_metrics(document)
            if not item.is_compared and item.model != "baseline"
        ]
        per_class = {item.slice: item.array for item in items if item.name == PER_CLASS}
        for item in items:
            counts = per_class.get(item.slice, ())
            if item.value is not None and is_measured(item.name, counts):
                found.setdefault((item.slice, item.name), item.value)
    return found


def is_measured(metric: str, per_class: Sequence[float]) -> bool:
    """Returns whether a slice has examples of the classes that a metric needs.

    TFMA's AUC of a slice with one of two classes is 0.

    Args:
      metric: its name.
      per_class: the number of examples of each class; empty if unknown.
    """
    needs = _OF_CLASSES.search(metric.lower())
    return not needs or len(per_class) != 2 or all(per_class)


def better(metric: str, config: Mapping[str, Any]) -> Better | None:
    """Returns the direction in which a metric improves; None if it is unknown.

    It follows from the thresholds of the config, else from the metric's name or class.

    Args:
      metric: its name, as ``metrics`` returns it.
      config: the resolved config; empty for a foreign pipeline.
    """
    name = metric.partition(" (")[0]
    evaluate = config.get("evaluate") or {}
    for threshold in evaluate.get("thresholds", ()):
        if threshold["metric"] == name:
            if change := threshold.get("change"):
                return "higher" if change["direction"].startswith("higher") else "lower"
            bounds = [threshold.get(f"{side}_bound") for side in ("lower", "upper")]
            if bounds.count(None) == 1:
                return "lower" if bounds[0] is None else "higher"
    kinds = [
        str(item.get("class"))
        for item in evaluate.get("metrics", ())
        if isinstance(item, Mapping) and item.get("name") == name
    ]
    found = {direction_of(item) for item in (name, *map(result_name, kinds))}
    return "higher" if "max" in found else "lower" if "min" in found else None
