"""Part of the section Training: the trials of a search, as a chart and a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from reports import formats
from reports.charts.parallel import parallel_chart
from reports.charts.svg import Axis
from reports.read_run import RunData
from reports.tables import Header, Mark, Table, numbers


def searches(run: RunData) -> list[dict[str, Any]]:
    """Returns what the template shows of each search."""
    return [
        {
            **found,
            "seconds": sum(trial["duration_s"] or 0.0 for trial in found["trials"]),
            "chart": _chart(found),
            "table": _table(found, f"trials-{i}"),
        }
        for i, found in enumerate(run.documents("trials"))
    ]


def _chart(found: Mapping[str, Any]) -> Markup:
    axes, lines = [], []
    for key, given in found["space"].items():
        name, is_range = key.partition(".")[2], isinstance(given, dict)
        texts = [] if is_range else [*map(formats.setting, given)]
        axes.append(Axis(name, log=is_range and given["log"], texts=texts))
    for trial in found["trials"]:
        places, texts = [], []
        for key, given in found["space"].items():
            value = trial["values"][key]
            is_range = isinstance(given, dict)
            places.append(value if is_range else float(given.index(value)))
            texts.append(f"{key} {formats.setting(value)}")
        reached = f"{found['objective']} {formats.number(trial['objective'])}"
        label = f"trial {trial['number']}: {', '.join([*texts, reached])}"
        lines.append((label, [*places, trial["objective"]]))
    return parallel_chart("Trials", [*axes, Axis(found["objective"])], lines)


def _table(found: Mapping[str, Any], id: str) -> Table:
    header: Header = [numbers("Trial"), numbers(found["objective"])]
    header += [key.partition(".")[2] for key in found["space"]]
    header += [numbers("Epochs"), numbers("Time", formats.seconds), "Result"]
    rows, result = [], Mark("good", "best")
    for trial in found["trials"]:
        if trial["objective"] is None:
            result = Mark("bad", trial["error"] or trial["status"])
        values = [formats.setting(trial["values"][key]) for key in found["space"]]
        row = [trial["number"], trial["objective"], *values]
        rows.append([*row, trial["epochs"], trial["duration_s"], result])
        result = Mark("quiet", "")
    return Table(id, "Trials", header, rows)
