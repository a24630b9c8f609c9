"""Runs of a pipeline as a table, and trends over them, for the web UI."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from reports import formats
from reports.charts.lines import Point, Series, line_chart
from reports.charts.svg import Axis, is_finite
from reports.evaluation import OVERALL
from reports.read_run import RunData
from reports.run_table import REFERENCE, RunTable, make_run_table
from reports.tables import Column, Header, Mark, Table, numbers
from sluice.record.states import RUN_TONES

_MAX_METRICS = 6
_MAX_PARAMETERS = 8
_DRIFT = "Drift: distance relative to its limit"


def make_index(
    runs: Sequence[RunData], href: Callable[[RunData], str | None]
) -> dict[str, Any]:
    """Returns table and trends of runs, the newest first.

    Args:
      runs: to show.
      href: returns the address of a run's page; None without one.
    """
    table = make_run_table(runs)
    hrefs = list(map(href, runs))
    return {
        "table": _table(table, hrefs),
        "charts": _charts(table, runs, hrefs),
    }


def _drift(run: RunData) -> float | None:
    """Returns the largest distance from the accepted data, relative to its limit.

    Those above it that chance gives are left out.
    """
    ratios = [
        float(feature["distance"]) / float(feature["limit"])
        for artifact in run.documents("distances")
        for comparison in artifact["comparisons"]
        if comparison["check"] == "drift"
        for feature in comparison["features"]
        if feature["limit"] and feature["distance"] > (feature.get("chance") or 0)
    ]
    return max(ratios, default=None)


def _charts(
    table: RunTable, runs: Sequence[RunData], hrefs: Sequence[str | None]
) -> list[tuple[str, Markup]]:
    points, values, limits = [], [], []
    for row, run, href in reversed([*zip(table.rows, runs, hrefs, strict=True)]):
        # An unchanged run repeats the numbers of the run before.
        if run.record.status == "up_to_date":
            continue
        label = f"{run.record.run_id}, {row.facts['outcome']}"
        points.append(Point(label, RUN_TONES[run.record.status], href))
        limits.append(_limits(run))
        values.append(
            {
                **row.metrics,
                "Examples": row.all_examples,
                _DRIFT: _drift(run),
                "Duration in seconds": row.facts["duration_s"],
            }
        )
    axes = Axis("run, the oldest first", low=1, high=len(points), whole=True), Axis()
    places, drawn = range(1, len(points) + 1), []
    metrics = table.compared_metrics[:_MAX_METRICS]
    metrics = [name for name in metrics if not name.endswith(REFERENCE)]
    for name in (*metrics, "Examples", _DRIFT, "Duration in seconds"):
        of_runs, limit = ([x.get(name) for x in side] for side in (values, limits))
        lines = [Series(name, places, of_runs, points=points)]
        if any(map(is_finite, limit)):
            lines.append(Series("limit", places, limit, 4))
        if sum(map(is_finite, of_runs)) > 1:
            drawn.append((name, line_chart(f"{name}, over the runs", lines, *axes)))
    return drawn


def _limits(run: RunData) -> dict[str, float]:
    """Returns the limit of each metric's value on all examples."""
    rows = (row for row in run.record.gate_rows("model") if row.slice == OVERALL)
    limits = {row.check: float(row.limit or 0) for row in rows if row.comparison}
    return {**limits, _DRIFT: 1.0}


def _table(table: RunTable, hrefs: Sequence[str | None]) -> Table:
    metrics = table.compared_metrics[:_MAX_METRICS]
    parameters = table.parameters[:_MAX_PARAMETERS]
    header: Header = ["Run", "Started", "Verdict", numbers("Version")]
    header += map(numbers, metrics)
    header += [numbers("Examples"), numbers("Duration", format=formats.seconds)]
    header += [*map(Column, parameters), "Tags"]
    rows = [
        (
            _link(href, row.facts["run_id"]),
            formats.time(row.facts["started_at"]),
            Mark(RUN_TONES[row.facts["status"]], row.facts["outcome"]),
            row.facts["version"],
            *(row.metrics.get(name) for name in metrics),
            row.all_examples,
            row.facts["duration_s"],
            *(formats.shorten(row.parameter(x), 60) for x in parameters),
            formats.tags_text(row.facts["tags"]),
        )
        for row, href in zip(table.rows, hrefs, strict=True)
    ]
    return Table("runs", formats.plural(len(rows), "run"), header, rows)


def _link(href: str | None, run_id: str) -> str | Markup:
    link = Markup('<a href="{}" class="one-line">{}</a>')
    return run_id if href is None else link.format(href, formats.visible(run_id))
