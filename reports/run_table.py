"""Table of runs: what each was, made and measured, and the parameters that differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from reports.evaluation import OVERALL
from reports.read_run import RunData
from reports.run_values import (
    better,
    duration_s,
    examples,
    metrics,
    outcome,
    parameters,
    version,
)
from sluice.errors import UsageError, did_you_mean
from sluice.record.json_number import json_number

# What a document of another form than expected raises.
_DAMAGED = (KeyError, TypeError, ValueError, AttributeError)


@dataclass
class RunRow:
    """A run.

    Attributes:
      verdict: in a few words, such as ``pushed``.
      version: under which its model is served.
      examples: by split.
      metrics: of the candidate on all examples, by name.
      parameters: values of the config by path; those that differ between the runs of
        the table.
    """

    run_id: str
    started_at: str
    duration_s: float | None
    status: str
    exit_code: int | None
    verdict: str
    version: int | None
    tags: dict[str, str]
    examples: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form; NaN and infinities are strings."""
        values = {name: json_number(value) for name, value in self.metrics.items()}
        return {**asdict(self), "metrics": values}


@dataclass(frozen=True)
class RunTable:
    """Runs of a pipeline in the order asked for."""

    rows: Sequence[RunRow]

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
    values = parameters([run.record for run in found])
    rows = [_row(run, item) for run, item in zip(found, values, strict=True)]
    config = next((run.record.config for run in found if run.record.config), {})
    if sort is not None:
        rows = _sorted(rows, sort, reverse, better(sort, config) == "lower")
    elif reverse:
        rows.reverse()
    shown = rows[:limit]
    _keep_what_differs(shown)
    return RunTable(shown)


def _row(run: RunData, values: dict[str, Any]) -> RunRow:
    record = run.record
    row = RunRow(
        run_id=record.run_id,
        started_at=record.started_at,
        duration_s=duration_s(record),
        status=record.status,
        exit_code=record.exit_code,
        verdict=outcome(record),
        version=version(record),
        tags=record.tags,
        parameters=values,
    )
    try:
        row.examples = examples(run)
        found = metrics(run).items()
        row.metrics = {name: value for (part, name), value in found if part == OVERALL}
    except _DAMAGED as error:
        run.notices.append(f"run {record.run_id}: a document is damaged: {error!r}")
    return row


def _keep_what_differs(rows: Sequence[RunRow]) -> None:
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


def _sorted(
    rows: list[RunRow], sort: str, reverse: bool, lowest_first: bool
) -> list[RunRow]:
    own: dict[str, Callable[[RunRow], Any]] = {
        "started": lambda row: row.started_at,
        "duration": lambda row: row.duration_s,
        "version": lambda row: row.version,
        "examples": lambda row: sum(row.examples.values()) or None,
    }
    paths = dict.fromkeys(name for row in rows for name in row.parameters)
    path = next((name for name in paths if f".{name}".endswith(f".{sort}")), sort)
    value_of = own.get(sort) or (
        lambda row: row.metrics.get(sort, row.parameters.get(path))
    )
    # NaN is equal to nothing, and has no place in an order.
    values = {row.run_id: value_of(row) for row in rows}
    known = {key for key, item in values.items() if item is not None and item == item}
    if not known:
        _keep_what_differs(rows)
        differing = dict.fromkeys(name for row in rows for name in row.parameters)
        names = [*own, *dict.fromkeys(name for row in rows for name in row.metrics)]
        raise UsageError(
            f"no run has {sort!r} to sort by",
            expected=f"{', '.join(names)}, or a parameter such as train.epochs",
            hint=did_you_mean(sort, [*names, *differing]),
        )
    if not all(isinstance(values[key], int | float) for key in known):
        values = {key: json.dumps(item) for key, item in values.items()}
    ordered = sorted(
        (row for row in rows if row.run_id in known),
        key=lambda row: values[row.run_id],
        reverse=lowest_first is reverse,
    )
    return ordered + [row for row in rows if row.run_id not in known]
