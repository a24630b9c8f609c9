"""Tables of what differs between two runs, for the terminal, Markdown and the page."""

from __future__ import annotations

from typing import cast

from reports import formats
from reports.compare import Comparison, MetricChange, NodeTime, RowChange, Side
from reports.run_values import Change
from reports.summarize_changes import value_texts
from reports.tables import Column, Mark, Table, Tone, numbers
from sluice.record.states import NODE_TONES

_OUTCOMES: dict[str, Tone] = {"better": "good", "worse": "bad"}
_RESULTS: dict[str, Tone] = {"pass": "good", "FAIL": "bad", "warn": "warn"}
_BEFORE_AFTER = (Column("before"), Column("after"))


def diff_tables(found: Comparison, *, all_metrics: bool = True) -> list[Table]:
    """Returns a table per kind of difference; kinds without one are left out.

    Args:
      found: the comparison.
      all_metrics: whether metrics that are the same are listed too.
    """
    tables = [
        Table("runs", "Runs", (Column(""), *_BEFORE_AFTER), _runs(found)),
        _changes("config", "Config", "key", found.config),
        Table(
            "code",
            "Code",
            (Column("module or file", code=True), Column("change"), Column("nodes")),
            [
                (item.name, item.change, ", ".join(item.nodes))
                for item in (*found.code, *found.files)
            ],
        ),
        _changes("packages", "Packages", "package", found.packages),
        _changes("spans", "Spans", "input", found.spans),
        _changes("examples", "Examples", "split", found.examples),
        Table(
            "features",
            "Statistics of features",
            (Column("feature"), Column("split"), numbers("shift"), Column("changes")),
            [
                (
                    item.feature,
                    item.split,
                    item.shift,
                    ", ".join(
                        f"{value.name} {' -> '.join(_texts(value))}"
                        for value in item.statistics
                    ),
                )
                for item in found.features
            ],
        ),
        Table(
            "gates",
            "Gates",
            (
                *map(Column, ("gate", "check", "slice", "limit")),
                *(numbers("before"), Column("result"), numbers("after")),
                *(Column("result"), Column("why")),
            ),
            [_gate_row(item) for item in found.gates],
        ),
        Table(
            "metrics",
            "Metrics",
            (
                *(Column("slice"), Column("metric")),
                *(
                    numbers("before"),
                    numbers("after"),
                    numbers("change", format=_signed),
                ),
                Column(""),
            ),
            [
                _metric_row(item)
                for item in (found.metrics if all_metrics else found.changed_metrics)
            ],
        ),
        Table(
            "time",
            "Time",
            (
                *(Column("node"), numbers("before", "s", _tenths), Column("state")),
                *(numbers("after", "s", _tenths), Column("state")),
                numbers("change", "s", lambda value: _tenths(value, "+")),
            ),
            [_time_row(item) for item in found.times],
        ),
    ]
    return [table for table in tables if table.rows]


def _changes(name: str, caption: str, label: str, changes: tuple[Change, ...]) -> Table:
    rows = [(item.name, *_texts(item)) for item in changes]
    return Table(name, caption, (Column(label), *_BEFORE_AFTER), rows)


def _texts(change: Change) -> tuple[str, str]:
    return value_texts(change.before, change.after)


def _runs(found: Comparison) -> list[tuple[str, str, str]]:
    sides = [_facts(found.before), _facts(found.after)]
    names = (name for name in sides[0] if any(side[name] for side in sides))
    return [
        (name, sides[0][name] or formats.MISSING, sides[1][name] or formats.MISSING)
        for name in names
    ]


def _facts(side: Side) -> dict[str, str]:
    tags = (f"{key}={value}" if value else key for key, value in side.tags.items())
    return {
        "run": side.run_id,
        "verdict": side.outcome,
        "version": "" if side.version is None else str(side.version),
        "started": formats.time(side.started_at),
        "time": formats.seconds(side.duration_s),
        "tags": ", ".join(tags),
    }


def _gate_row(item: RowChange) -> tuple[object, ...]:
    before, after = item.before or {}, item.after or {}
    limits = dict.fromkeys(side.get("limit") for side in (before, after) if side)
    marks = [
        Mark(_RESULTS.get(side["result"], "quiet"), side["result"].lower())
        if side
        else None
        for side in (before, after)
    ]
    return (
        item.gate,
        item.check,
        item.slice,
        " -> ".join(str(limit) for limit in limits if limit is not None),
        *(before.get("value"), marks[0], after.get("value"), marks[1]),
        after.get("why", ""),
    )


def _metric_row(item: MetricChange) -> tuple[object, ...]:
    mark = Mark(_OUTCOMES.get(item.outcome, "quiet"), item.outcome)
    return item.slice, item.metric, item.before, item.after, item.delta, mark


def _time_row(item: NodeTime) -> tuple[object, ...]:
    known = item.before_s is not None and item.after_s is not None
    return (
        item.node,
        *(item.before_s, _state(item.before_state)),
        *(item.after_s, _state(item.after_state)),
        (item.after_s or 0) - (item.before_s or 0) if known else None,
    )


def _state(state: str | None) -> Mark | None:
    if state is None:
        return None
    word = "done" if state == "ran" else state.replace("_", " ")
    tone = cast(Tone, NODE_TONES.get(state, "quiet"))
    return Mark(tone, word)


def _signed(value: float | None) -> str:
    return ("+" if value and value > 0 else "") + formats.number(value)


def _tenths(value: float | None, sign: str = "") -> str:
    return formats.MISSING if value is None else f"{value:{sign},.1f}"
