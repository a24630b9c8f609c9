"""Tables of what differs between two runs, for the terminal, Markdown and the page."""

from __future__ import annotations

from reports import formats
from reports.compare import Comparison, MetricChange, NodeTime, RowChange, Side
from reports.evaluation import OVERALL
from reports.run_values import Change, tags_text
from reports.summarize_changes import value_texts
from reports.tables import Column, Mark, Table, Tone, numbers
from sluice.record.states import NODE_TONES

_OUTCOMES: dict[str, Tone] = {"better": "good", "worse": "bad"}
_MAX_VALUE = 30
_ORDER = ("worse", "better", "differs", "same")
_RESULTS: dict[str, Tone] = {"pass": "good", "FAIL": "bad", "warn": "warn"}
_BEFORE_AFTER = ("before", "after")


def diff_tables(found: Comparison, *, all_metrics: bool = True) -> list[Table]:
    """Returns a table per kind of difference; kinds without one are left out.

    Args:
      found: the comparison.
      all_metrics: whether metrics that are the same are listed too.
    """
    metrics = sorted(
        found.metrics if all_metrics else found.changed_metrics,
        key=lambda item: (item.slice != OVERALL, _ORDER.index(item.outcome)),
    )
    tables = [
        Table("runs", "The two runs", ("", *_BEFORE_AFTER), _runs(found)),
        Table(
            "gates",
            "Checks with another result or value",
            (
                *("gate", "check", "slice", "limit"),
                *(numbers("before"), "result", numbers("after")),
                *("result", "why"),
            ),
            [_gate_row(item) for item in found.gates],
        ),
        Table(
            "metrics",
            "Metrics of the candidate",
            (
                *("slice", "metric", numbers("before")),
                *(numbers("after"), numbers("change", format=_signed), ""),
            ),
            [_metric_row(item) for item in metrics],
        ),
        _changes("config", "Values of the config", "key", found.config),
        Table(
            "code",
            "Modules with another content",
            (Column("module", code=True), "change", "nodes"),
            [(item.name, item.change, ", ".join(item.nodes)) for item in found.code],
        ),
        _changes("schema", "Parts of the schema", "part", found.schema),
        _changes("packages", "Versions of packages", "package", found.packages),
        _changes("spans", "Spans of the data", "input", found.spans),
        _changes("examples", "Number of examples", "split", found.examples),
        Table(
            "features",
            "Features with other statistics, the largest shift first",
            ("feature", "split", numbers("shift"), "changes"),
            [
                (item.feature, item.split, item.shift, _list(item.statistics))
                for item in found.features
            ],
        ),
        Table(
            "time",
            "Duration of each node",
            (
                *("node", numbers("before", "s", _tenths), "state"),
                *(numbers("after", "s", _tenths), "state"),
                numbers(
                    "change", "s", lambda value: _tenths(value, "+" if value else "")
                ),
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


def _list(changes: tuple[Change, ...]) -> str:
    return ", ".join(f"{item.name} {' -> '.join(_texts(item))}" for item in changes)


def _runs(found: Comparison) -> list[tuple[str, str, str]]:
    sides = [_facts(found.before), _facts(found.after)]
    names = (name for name in sides[0] if any(side[name] for side in sides))
    return [
        (name, sides[0][name] or formats.MISSING, sides[1][name] or formats.MISSING)
        for name in names
    ]


def _facts(side: Side) -> dict[str, str]:
    return {
        "run": side.run_id,
        "verdict": side.outcome,
        "version": "" if side.version is None else str(side.version),
        "started": formats.time(side.started_at),
        "time": formats.seconds(side.duration_s),
        "tags": tags_text(side.tags),
    }


def _gate_row(item: RowChange) -> tuple[object, ...]:
    before, after = item.before or {}, item.after or {}
    limits = dict.fromkeys(side.get("limit") for side in (before, after) if side)
    marks = [
        side and Mark(_RESULTS.get(side["result"], "quiet"), side["result"].lower())
        for side in (item.before, item.after)
    ]
    values = [side.get("value") for side in (before, after)]
    why = after.get("why", "")
    if any(isinstance(value, str) and len(value) > _MAX_VALUE for value in values):
        # Such as the name of the baseline, which needs more room than a number.
        why, values = " -> ".join(value_texts(*values)), [None, None]
    return (
        item.gate,
        item.check,
        item.slice,
        " -> ".join(str(limit) for limit in limits if limit is not None),
        *(values[0], marks[0], values[1], marks[1]),
        why,
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
        round(item.after_s or 0, 1) - round(item.before_s or 0, 1) if known else None,
    )


def _state(state: str | None) -> Mark | None:
    if state is None:
        return None
    word = "done" if state == "ran" else state.replace("_", " ")
    return Mark(NODE_TONES.get(state, "quiet"), word)


def _signed(value: float | None) -> str:
    return ("+" if value and value > 0 else "") + formats.number(value)


def _tenths(value: float | None, sign: str = "") -> str:
    # Without a zero's sign.
    return formats.MISSING if value is None else f"{round(value, 1) + 0.0:{sign},.1f}"
