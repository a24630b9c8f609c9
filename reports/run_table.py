"""Table of runs: what each was, made and measured, and the parameters that differ."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from reports.evaluation import OVERALL
from reports.read_run import RunData
from reports.run_values import better, examples, metrics, run_facts
from sluice.errors import UsageError, did_you_mean
from sluice.json_paths import flatten
from sluice.record.json_number import json_number


@dataclass
class RunRow:
    """A run.

    Attributes:
      facts: see ``run_facts``.
      examples: by split.
      metrics: of the candidate on all examples, by name.
      parameters: values of the config by path; those that differ between the runs of
        the table.
    """

    facts: dict[str, Any]
    examples: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form; NaN and infinities are strings."""
        values = {name: json_number(value) for name, value in self.metrics.items()}
        more = {"examples": self.examples, "parameters": self.parameters}
        return {**self.facts, **more, "metrics": values}

    def value(self, name: str) -> Any:
        """Returns what runs are sorted by; None for what a run lacks, or NaN."""
        own = {
            "started": self.facts["started_at"],
            "duration": self.facts["duration_s"],
            "version": self.facts["version"],
            "examples": sum(self.examples.values()) or None,
        }
        paths = (path for path in self.parameters if f".{path}".endswith(f".{name}"))
        known = {**self.parameters, **self.metrics, **own}
        found = known.get(name, known.get(next(paths, "")))
        return found if found == found else None


@dataclass(frozen=True)
class RunTable:
    """Runs of a pipeline in the order asked for."""

    rows: list[RunRow]

    @property
    def metrics(self) -> list[str]:
        """Returns the names of all metrics, in order of appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row.metrics))

    @property
    def parameters(self) -> list[str]:
        """Returns the names of the parameters that differ, in order of appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row.parameters))


def make_run_table(
    runs: Iterable[RunData],
    *,
    sort: str | None = None,
    reverse: bool = False,
    limit: int | None = None,
) -> RunTable:
    """Returns the table of some runs.

    Args:
      runs: in the order that they keep without ``sort``, the newest first.
      sort: ``started``, ``duration``, ``version``, ``examples``, a metric, or a
        parameter; metrics have the best first, all else the largest. Runs without a
        value are last.
      reverse: turns the order around.
      limit: the number of rows; None for all.

    Raises:
      UsageError: no run has a value to sort by.
    """
    found = list(runs)
    rows = [_row(run) for run in found]
    if sort is not None:
        config = next((run.record.config for run in found if run.record.config), {})
        rows = _sorted(rows, sort, reverse is (better(sort, config) == "lower"))
    elif reverse:
        rows.reverse()
    shown = rows[:limit]
    _keep_what_differs(shown)
    return RunTable(shown)


def _row(run: RunData) -> RunRow:
    row = RunRow(run_facts(run.record), parameters=flatten(run.record.config))
    try:
        row.examples = examples(run)
        found = metrics(run).items()
        row.metrics = {name: value for (part, name), value in found if part == OVERALL}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        run_id = run.record.run_id
        run.notices.append(f"run {run_id}: a document is damaged: {error!r}")
    return row


def _keep_what_differs(rows: list[RunRow]) -> None:
    """Drops parameters with the same value in all rows that have any."""
    configured = [row for row in rows if row.parameters]
    names = dict.fromkeys(name for row in configured for name in row.parameters)
    differing = [
        name
        for name in names
        if len({json.dumps(row.parameters.get(name)) for row in configured}) > 1
    ]
    for row in configured:
        row.parameters = {name: row.parameters.get(name) for name in differing}


def _sorted(rows: list[RunRow], sort: str, descending: bool) -> list[RunRow]:
    known = [row for row in rows if row.value(sort) is not None]
    if not known:
        _keep_what_differs(rows)
        names = ["started", "duration", "version", "examples"]
        names += dict.fromkeys(name for row in rows for name in row.metrics)
        differing = dict.fromkeys(name for row in rows for name in row.parameters)
        raise UsageError(
            f"no run has {sort!r} to sort by",
            expected=f"{', '.join(names)}, or a parameter such as train.epochs",
            hint=did_you_mean(sort, [*names, *differing]),
        )
    is_number = all(isinstance(row.value(sort), int | float) for row in known)
    as_key: Any = (lambda value: value) if is_number else json.dumps
    ordered = sorted(known, key=lambda x: as_key(x.value(sort)), reverse=descending)
    return ordered + [row for row in rows if row.value(sort) is None]
