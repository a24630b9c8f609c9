"""Values of runs, and a table of them with the parameters that differ.

All come from the record and its documents. A value that the record lacks, as that of an
older version or of a run that has failed, is missing or None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from reports import formats
from reports.evaluation import (
    OVERALL,
    PER_CLASS,
    Metric,
    overall_estimates,
    read_metrics,
)
from reports.feature_statistics import statistics
from reports.read_run import RunData
from sluice.errors import UsageError, did_you_mean
from sluice.json_values import flatten, jsonable
from sluice.metrics import direction_of, result_name
from sluice.record.outcome import run_facts
from sluice.splits import SERVING

# Metrics that have no meaning where all examples are of one class.
_OF_CLASSES = re.compile(r"auc|precision|recall|f1|roc")

# Ends the name of a metric of a constant prediction.
REFERENCE = " reference"
Better = Literal["higher", "lower"]
_NOTHING: tuple[Any, ...] = (None, {}, [])
# Columns of a table of runs besides metrics and parameters.
FACTS = ("run", "verdict", "version", "duration", "examples", "tags", "started")


def examples(run: RunData) -> dict[str, int]:
    """Returns the number of examples per split of the data that is trained on.

    They are those that were ingested, or of a foreign pipeline those of the statistics.
    Splits of further statistics, such as of serving requests, are named after the node
    too.
    """
    counts: dict[str, int] = {}
    for artifact in run.documents("ingestion"):
        for name, records in artifact["splits"].items():
            counts.setdefault(name, records)
    if not counts:
        for node, name, count, _ in statistics(run):
            counts[f"{node}: {name}" if name in counts else name] = count
    return counts


def metrics(run: RunData) -> dict[tuple[str, str], float]:
    """Returns the metrics of the candidate by slice and name, all examples first.

    A metric of one class or output is named like ``precision (class_id 3)``, and that
    of a constant prediction like ``auc reference``. Arrays, tables, and metrics that
    could not be computed or measured are left out.
    """
    values: dict[tuple[str, str], float] = {}
    for document in run.documents("metrics"):
        items = [x for x in read_metrics(document) if x.model != "baseline"]
        task, per_class = label_task(run.record.config), examples_per_class(items)
        overall = overall_estimates(document).metrics
        for item in items:
            counts = per_class.get(item.slice, ())
            if item.value is not None and is_measured(item.name, counts, task):
                values.setdefault((item.slice, item.name), item.value)
                known = overall.get(item.name) if item.slice == OVERALL else None
                if known and known.gain is not None and known.reference is not None:
                    values[OVERALL, item.name + REFERENCE] = known.reference
    return values


def label_task(config: Mapping[str, Any]) -> str | None:
    """Returns the task of a config's label; None for a foreign pipeline."""
    return (config.get("label") or {}).get("task")


def examples_per_class(metrics: Iterable[Metric]) -> dict[str, list[float]]:
    """Returns the counts of each slice."""
    return {item.slice: item.array for item in metrics if item.name == PER_CLASS}


def is_measured(metric: str, per_class: Sequence[float], task: str | None) -> bool:
    """Returns whether a slice has examples of the classes that a metric needs.

    TFMA's AUC of a class without examples is 0, and lowers the mean over classes.

    Args:
      metric: its name.
      per_class: the number of examples of each class; empty if unknown.
      task: of the label.
    """
    if all(per_class) or not _OF_CLASSES.search(metric.lower()):
        return True
    is_of_two = len(per_class) == 2 and task != "multi_label"
    return not is_of_two and "macro_average" not in metric


def better(metric: str, config: Mapping[str, Any]) -> Better | None:
    """Returns the direction in which a metric improves; None if it is unknown.

    It follows from a ``change`` of the config, else from the metric's name or class,
    else from its bounds: an upper one may be a cap on a metric that should be high.

    Args:
      metric: its name, as ``metrics`` returns it.
      config: the resolved config; empty for a foreign pipeline.
    """
    name = metric.partition(" (")[0]
    evaluate = config.get("evaluate") or {}
    limits = [x for x in evaluate.get("thresholds", ()) if x["metric"] == name]
    for change in (x["change"] for x in limits if x.get("change")):
        return "higher" if change["direction"].startswith("higher") else "lower"
    directions = {direction_of(kind) for kind in kinds_of(name, config)}
    if known := directions & {"max", "min"}:
        return "higher" if "max" in known else "lower"
    has_lower, has_upper = (
        any(x.get(f"{side}_bound") is not None for x in limits)
        for side in ("lower", "upper")
    )
    if has_lower == has_upper:
        return None
    return "higher" if has_lower else "lower"


def kinds_of(metric: str, config: Mapping[str, Any]) -> list[str]:
    """Returns a metric's name, and what TFMA calls its class in the config."""
    items = (config.get("evaluate") or {}).get("metrics", ())
    named = [x for x in items if isinstance(x, Mapping) and x.get("name") == metric]
    return [metric, *(result_name(str(item.get("class"))) for item in named)]


@dataclass
class RunRow:
    """A run.

    Attributes:
      facts: see ``run_facts``.
      examples: by split.
      metrics: of the candidate on all examples, by name.
      parameters: values of the config by path; those that differ between the runs of
        the table, or were asked for.
    """

    facts: dict[str, Any]
    examples: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def all_examples(self) -> int | None:
        """How many there are in all splits, without serving requests."""
        return sum(n for x, n in self.examples.items() if x != SERVING) or None

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form; NaN and infinities are strings."""
        more = {"examples": self.examples, "parameters": self.parameters}
        return {**self.facts, **more, "metrics": jsonable(self.metrics)}

    def parameter(self, name: str) -> str:
        """Returns a value of the config, or the keys below it as one text."""
        value = self.parameters.get(name)
        if value not in _NOTHING:
            return formats.setting(value)
        keys = {
            path[len(name) :].lstrip("."): self.parameter(path)
            for path in self.parameters
            if _is_below(path, name)
        }
        return " ".join(f"{key}={text}" for key, text in keys.items() if text)

    @property
    def values(self) -> dict[str, Any]:
        """What runs are sorted by; without what a run lacks, and NaN."""
        known = {
            **self.parameters,
            **self.metrics,
            "started": self.facts["started_at"],
            "duration": self.facts["duration_s"],
            "version": self.facts["version"],
            "examples": self.all_examples,
        }
        # NaN is not equal to itself.
        return {x: v for x, v in known.items() if v is not None and v == v}


@dataclass(frozen=True)
class RunTable:
    """Runs of a pipeline in the order asked for."""

    rows: list[RunRow]

    @property
    def metrics(self) -> list[str]:
        """Returns the names of all metrics, in order of appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row.metrics))

    @property
    def compared_metrics(self) -> list[str]:
        """Returns the names of the metrics that do not just count examples."""
        return [name for name in self.metrics if not name.endswith("example_count")]

    @property
    def parameters(self) -> list[str]:
        """Returns the parameters that differ, first those that most runs have.

        Keys below another one, as those of a learning rate that is a number in one run
        and a schedule in another, are not listed: ``RunRow.parameter`` has them.
        """
        names = dict.fromkeys(name for row in self.rows for name in row.parameters)
        listed = [x for x in names if not any(_is_below(x, other) for other in names)]
        runs = {x: sum(bool(row.parameter(x)) for row in self.rows) for x in listed}
        return sorted(listed, key=lambda name: -runs[name])


def make_run_table(
    runs: Iterable[RunData],
    *,
    sort: str | None = None,
    limit: int | None = None,
    columns: Sequence[str] = (),
) -> RunTable:
    """Returns the table of some runs.

    Args:
      runs: in the order that they keep without ``sort``, the newest first.
      sort: ``started``, ``duration``, ``version``, ``examples``, a metric, or a
        parameter; metrics have the best first, all else the largest. Runs without a
        value are last.
      limit: the number of rows; None for all.
      columns: names of ``FACTS``, metrics and parameters, which are kept.

    Raises:
      UsageError: no run has a value to sort by, or one of the columns.
    """
    found = list(runs)
    rows = [_row(run) for run in found]
    if sort is not None:
        config = next((run.record.config for run in found if run.record.config), {})
        rows = _sorted(rows, sort, better(sort, config) != "lower")
    shown = rows[:limit]
    _check_columns(shown, columns)
    _keep_what_differs(shown, columns)
    return RunTable(shown)


def _row(run: RunData) -> RunRow:
    row = RunRow(run_facts(run.record), parameters=flatten(run.record.config))
    try:
        row.examples = examples(run)
        values = metrics(run).items()
        row.metrics = {name: value for (part, name), value in values if part == OVERALL}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        run_id = run.record.run_id
        run.notices.append(f"run {run_id}: a document is damaged: {error!r}")
    return row


def _is_below(path: str, name: str) -> bool:
    return path.startswith((f"{name}.", f"{name}["))


def _check_columns(rows: list[RunRow], columns: Sequence[str]) -> None:
    known = [*FACTS, *(x for row in rows for x in (*row.metrics, *row.parameters))]
    for name in columns if rows else ():
        if name not in known and not any(_is_below(path, name) for path in known):
            hint = did_you_mean(name, known) or "see --help"
            raise UsageError(f"no run has {name!r} for a column", hint=hint)


def _keep_what_differs(rows: list[RunRow], columns: Sequence[str]) -> None:
    """Drops parameters with the same value in all rows that have any."""
    configured = [row for row in rows if row.parameters]
    names = dict.fromkeys(name for row in configured for name in row.parameters)
    differing = [
        name
        for name in names
        if len({json.dumps(row.parameters.get(name)) for row in configured}) > 1
        or any(name == column or _is_below(name, column) for column in columns)
    ]
    for row in configured:
        row.parameters = {name: row.parameters.get(name) for name in differing}


def _sorted(rows: list[RunRow], sort: str, descending: bool) -> list[RunRow]:
    known = [row for row in rows if sort in row.values]
    if not known:
        names = dict.fromkeys(name for row in rows for name in row.values)
        hint = did_you_mean(sort, names) or "see --help"
        raise UsageError(f"no run has {sort!r} to sort by", hint=hint)

    def key(row: RunRow) -> tuple[bool, Any]:
        value = row.values[sort]
        is_number = isinstance(value, int | float)
        return not is_number, value if is_number else json.dumps(value)

    unknown = [row for row in rows if sort not in row.values]
    return sorted(known, key=key, reverse=descending) + unknown
