"""Tables of what differs between two runs, for the terminal, Markdown and the page."""

from __future__ import annotations

from typing import Any

from reports import formats
from reports.compare import Change, Comparison
from reports.evaluation import OVERALL
from reports.tables import Column, Header, Mark, Table, Tone, numbers
from sluice.record.states import NODE_TONES

_OUTCOMES: dict[str, Tone] = {"worse": "bad", "better": "good"}
_ORDER = ("worse", "better", "differs", "same")
_RESULTS: dict[str, Tone] = {"pass": "good", "FAIL": "bad", "warn": "warn"}
_KINDS = {
    "config": ("Values of the config", "key"),
    "schema": ("Parts of the schema", "part"),
    "packages": ("Versions of packages", "package"),
    "spans": ("Spans of the data", "input"),
    "examples": ("Number of examples", "split"),
}


def diff_tables(found: Comparison, *, all_metrics: bool = True) -> list[Table]:
    """Returns a table per kind of difference; kinds without one are left out.

    Args:
      found: the comparison.
      all_metrics: whether metrics that are the same are listed too.
    """
    tables = [
        Table("runs", "The two runs", ("", "before", "after"), _runs(found)),
        _gates(found.changes.get("gates", [])),
        _metrics(found, all_metrics),
        Table(
            "code",
            "Modules with another content",
            (Column("module", code=True), "change"),
            [(x.name, _code_change(x)) for x in found.changes.get("code", ())],
        ),
        *(
            Table(kind, caption, (Column(label), "before", "after"), rows)
            for kind, (caption, label) in _KINDS.items()
            for rows in [[(x.name, *x.texts) for x in found.changes.get(kind, ())]]
        ),
        Table(
            "features",
            "Features with other statistics, the largest shift first",
            ("feature", "split", numbers("shift"), "changes"),
            [
                (
                    item.feature,
                    item.split,
                    item.shift,
                    ", ".join(map(str, item.statistics)),
                )
                for item in found.features
            ],
        ),
        _times(found.changes.get("times", [])),
    ]
    return [table for table in tables if table.rows]


def _code_change(change: Change) -> str:
    if change.before is None:
        return "new"
    return "gone" if change.after is None else "changed"


def _runs(found: Comparison) -> list[list[str]]:
    shown = {
        "run": lambda side: side["run_id"],
        "verdict": lambda side: side["outcome"],
        "version": lambda side: formats.number(side["version"]),
        "started": lambda side: formats.time(side["started_at"]),
        "time": lambda side: formats.seconds(side["duration_s"]),
        "tags": lambda side: formats.tags_text(side["tags"]) or formats.MISSING,
    }
    sides = found.before, found.after
    return [[name, *map(text, sides)] for name, text in shown.items()]


def _gates(changes: list[Change]) -> Table:
    header: Header = ["check", "limit", numbers("before"), "result before"]
    header += [numbers("after"), "result after"]
    rows: list[list[Any]] = []
    for change in changes:
        row: list[Any] = [change.name, (change.after or change.before)["limit"]]
        for side in (change.before, change.after):
            if side is None:
                row += [None, None]
                continue
            tone = _RESULTS.get(side["result"], "quiet")
            row += [side["value"], Mark(tone, side["result"].lower())]
        rows.append(row)
    return Table("gates", "Checks with another result or value", header, rows)


def _metrics(found: Comparison, all_metrics: bool) -> Table:
    shown = sorted(
        (x for x in found.metrics if all_metrics or x.outcome != "same"),
        key=lambda item: (item.slice != OVERALL, _ORDER.index(item.outcome)),
    )
    header: Header = ["slice", "metric", numbers("before"), numbers("after")]
    header += [numbers("change", format=_signed), ""]
    rows = [
        (
            *(item.slice, item.metric, item.before, item.after, item.delta),
            Mark(_OUTCOMES.get(item.outcome, "quiet"), item.outcome),
        )
        for item in shown
    ]
    return Table("metrics", "Metrics of the candidate", header, rows)


def _times(changes: list[Change]) -> Table:
    header: Header = ["node", numbers("before", format=formats.seconds), "state before"]
    header += [numbers("after", format=formats.seconds), "state after"]
    rows = []
    for change in changes:
        row: list[Any] = [change.name]
        for state, duration_s in (
            x or (None, None) for x in (change.before, change.after)
        ):
            word = str(state).replace("_", " ").replace("ran", "done")
            row += [duration_s, state and Mark(NODE_TONES.get(state, "quiet"), word)]
        rows.append(row)
    return Table("time", "Nodes with another state or duration", header, rows)


def _signed(value: float | None) -> str:
    return ("+" if value and value > 0 else "") + formats.number(value)
