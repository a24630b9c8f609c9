"""The page of a pipeline's runs: trends over the runs, and a link to each report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from markupsafe import Markup

from reports import formats
from reports.charts.lines import Series, line_chart
from reports.charts.svg import Axis
from reports.environment import render_page
from reports.read_run import REPORT_FILE, RunData
from reports.run_table import RunTable, make_run_table
from reports.tables import Column, Header, Mark, Table, numbers
from sluice.record.states import RUN_TONES

MAX_RUNS = 300
_MAX_METRICS = 6
_MAX_PARAMETERS = 8


def render_index(pipeline: str, runs: Iterable[RunData]) -> str:
    """Returns the page.

    Args:
      pipeline: its name.
      runs: the newest first; of more than 300, the newest are shown.
    """
    shown = list(islice(runs, MAX_RUNS))
    limit = MAX_RUNS if len(shown) == MAX_RUNS else None
    index = make_index(shown, _report_link)
    return render_page("index.html.j2", pipeline=pipeline, index=index, limit=limit)


def make_index(
    runs: Sequence[RunData], link: Callable[[RunData], str | Markup]
) -> dict[str, Any]:
    """Returns table and trends of runs, the newest first; ``link`` shows an id."""
    found = make_run_table(runs)
    drift = {run.record.run_id: _drift(run) for run in runs}
    table = _table(found, [link(run) for run in runs])
    return {"table": table, "charts": _charts(found, drift)}


def _drift(run: RunData) -> float | None:
    """Returns the largest distance from the accepted data, relative to its limit."""
    ratios = [
        float(feature["distance"]) / float(feature["limit"])
        for artifact in run.documents("distances")
        for comparison in artifact["comparisons"]
        if comparison["check"] == "drift"
        for feature in comparison["features"]
        if float(feature["limit"])
    ]
    return max(ratios, default=None)


def _charts(
    table: RunTable, drift: Mapping[str, float | None]
) -> list[tuple[str, Markup]]:
    # An unchanged run repeats the numbers of the run before.
    rows = [row for row in table.rows[::-1] if row.facts["status"] != "up_to_date"]
    splits = list(dict.fromkeys(name for row in rows for name in row.examples))
    charts: dict[str, dict[str, list[float | None]]] = {
        name: {"": [row.metrics.get(name) for row in rows]}
        for name in _shown_metrics(table)
    }
    charts["Examples"] = {x: [row.examples.get(x) for row in rows] for x in splits[:5]}
    drifts = [drift[row.facts["run_id"]] for row in rows]
    charts["Drift: distance relative to its limit"] = {"": drifts}
    charts["Duration in seconds"] = {"": [row.facts["duration_s"] for row in rows]}
    x_axis = Axis("run, the oldest first", low=1, high=len(rows), whole=True)
    drawn = []
    for title, lines in charts.items():
        series = []
        for style, (name, values) in enumerate(lines.items()):
            known = [(i, v) for i, v in enumerate(values, start=1) if v is not None]
            x, y = [i for i, _ in known], [value for _, value in known]
            series.append(Series(name, x, y, style))
        if any(len(line.x) > 1 for line in series):
            chart = line_chart(f"{title}, over the runs", series, x_axis, Axis())
            drawn.append((title, chart))
    return drawn


def _shown_metrics(table: RunTable) -> list[str]:
    # What counts examples is no metric that one compares.
    names = [name for name in table.metrics if not name.endswith("example_count")]
    return names[:_MAX_METRICS]


def _table(table: RunTable, links: Sequence[str | Markup]) -> Table:
    metrics, parameters = _shown_metrics(table), table.parameters[:_MAX_PARAMETERS]
    header: Header = ["Run", "Started", "Verdict", numbers("Version")]
    header += map(numbers, metrics)
    header += [numbers("Examples"), numbers("Duration", format=formats.seconds)]
    header += [*map(Column, parameters), "Tags"]
    rows = [
        (
            link,
            formats.time(row.facts["started_at"]),
            Mark(RUN_TONES[row.facts["status"]], row.facts["outcome"]),
            row.facts["version"],
            *(row.metrics.get(name) for name in metrics),
            sum(row.examples.values()) or None,
            row.facts["duration_s"],
            *(formats.shorten(row.parameters.get(x, ""), 60) for x in parameters),
            formats.tags_text(row.facts["tags"]),
        )
        for link, row in zip(links, table.rows, strict=True)
    ]
    return Table("runs", formats.plural(len(rows), "run"), header, rows)


def _report_link(run: RunData) -> str | Markup:
    run_id, run_dir = run.record.run_id, run.run_dir
    if not (run_dir / REPORT_FILE).exists():
        return run_id
    # Relative to the workspace's folder, so that it can be moved.
    href = f"{run_dir.parent.name}/{run_id}/{REPORT_FILE}"
    return Markup('<a href="{}">{}</a>').format(href, run_id)
