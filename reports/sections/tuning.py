"""Part of the section Training: the trials of a search, as a chart and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reports import formats
from reports.charts.parallel import Line, parallel_chart
from reports.charts.svg import Axis
from reports.read_run import RunData
from reports.tables import Header, Mark, Table, numbers

Trial = Mapping[str, Any]


def searches(run: RunData) -> list[dict[str, Any]]:
    """Returns what the template shows of each search."""
    return [
        {
            **found,
            "best": (trials := in_order(found))[0],
            "seconds": sum(trial["duration_s"] or 0.0 for trial in trials),
            "chart": _chart(found, trials),
            "table": _table(i, found, trials),
        }
        for i, found in enumerate(run.documents("trials"))
    ]


def in_order(found: Mapping[str, Any]) -> list[Trial]:
    """Returns the trials of a document ``trials``: the best first, failed ones last."""
    sign = -1 if found["direction"] == "max" else 1

    def key(trial: Trial) -> tuple[bool, float, int]:
        value = trial["objective"]
        return value is None, sign * (value or 0.0), trial["number"]

    return sorted(found["trials"], key=key)


def short_names(keys: Sequence[str]) -> list[str]:
    """Returns key paths without the section, if they are unique so."""
    names = [key.partition(".")[2] for key in keys]
    return [*keys] if len({*names}) < len(names) else names


def _chart(found: Mapping[str, Any], trials: Sequence[Trial]) -> Any:
    space, objective = found["space"], found["objective"]
    axes = []
    for name, given in zip(short_names(list(space)), space.values(), strict=True):
        texts = [] if isinstance(given, dict) else [*map(formats.setting, given)]
        log = isinstance(given, dict) and given["log"]
        axes.append(Axis(name, log=log, texts=texts))
    lines = []
    for trial in trials:
        values = [
            trial["values"][key]
            if isinstance(given, dict)
            else float(given.index(trial["values"][key]))
            for key, given in space.items()
        ]
        texts = [f"{key} {formats.setting(x)}" for key, x in trial["values"].items()]
        reached = f"{objective} {formats.number(trial['objective'])}"
        label = f"trial {trial['number']}: {', '.join([*texts, reached])}"
        is_best = trial["number"] == found["best"]
        lines.append(Line(label, [*values, trial["objective"]], is_best))
    return parallel_chart("Trials", [*axes, Axis(objective)], lines)


def _table(index: int, found: Mapping[str, Any], trials: Sequence[Trial]) -> Table:
    header: Header = [numbers("Trial"), numbers(found["objective"]), "Result"]
    header += short_names(list(found["space"]))
    header += [numbers("Epochs"), numbers("Time", formats.seconds)]
    rows = []
    for trial in trials:
        failed = trial["error"] or trial["status"]
        mark = Mark("bad", failed) if trial["objective"] is None else None
        if trial["number"] == found["best"]:
            mark = Mark("good", "best")
        values = [formats.setting(trial["values"][key]) for key in found["space"]]
        row = [trial["number"], trial["objective"], mark, *values]
        rows.append([*row, trial["epochs"], trial["duration_s"]])
    return Table(f"trials-{index}", "Trials", header, rows)
