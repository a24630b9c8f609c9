"""The page of a pipeline's runs: trends over the runs, and a link to each report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from markupsafe import Markup

from reports import formats
from reports.charts.lines import Point, Series, line_chart
from reports.charts.svg import Axis
from reports.environment import render_page
from reports.evaluation import OVERALL
from reports.read_run import REPORT_FILE, RunData
from reports.run_table import RunTable, make_run_table
from reports.sections.training import overlaid
from reports.tables import Column, Header, Mark, Table, numbers
from sluice.record.states import RUN_TONES
from sluice.record.verdict import Check

MAX_RUNS = 300
_MAX_METRICS = 6
_MAX_PARAMETERS = 8
# Of the newest runs, those whose losses are in one chart.
_MAX_LOSSES = 6


def render_index(pipeline: str, runs: Iterable[RunData]) -> str:
    """Returns the page.

    Args:
      pipeline: its name.
      runs: the newest first; of more than 300, the newest are shown.
    """
    shown = list(islice(runs, MAX_RUNS))
    limit = MAX_RUNS if len(shown) == MAX_RUNS else None
    index = make_index(shown, _report)
    return render_page("index.html.j2", pipeline=pipeline, index=index, limit=limit)


def make_index(
    runs: Sequence[RunData], href: Callable[[RunData], str | None]
) -> dict[str, Any]:
    """Returns table, trends and losses of runs, the newest first.

    Args:
      runs: to show.
      href: returns the address of a run's page; None without one.
    """
    found = make_run_table(runs)
    hrefs = {run.record.run_id: href(run) for run in runs}
    return {
        "table": _table(found, hrefs),
        "charts": _charts(found, runs, hrefs),
        "losses": _losses(runs),
    }


def _losses(runs: Iterable[RunData]) -> dict[str, Any] | None:
    """Returns the curves of the newest trainings, and their runs."""
    trainings: dict[str, dict[str, Any]] = {}
    for run in runs:
        for document in run.epochs()[:1]:
            # A training that was not repeated has the same document.
            if document not in trainings.values():
                trainings[run.record.run_id] = document
        if len(trainings) == _MAX_LOSSES:
            break
    if len(trainings) < 2:
        return None
    (title, chart), *_ = overlaid(trainings, range(len(trainings)), has_key=False)
    return {"title": title, "chart": chart, "runs": list(trainings)}


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
    table: RunTable, runs: Sequence[RunData], hrefs: Mapping[str, str | None]
) -> list[tuple[str, Markup]]:
    # An unchanged run repeats the numbers of the run before.
    pairs = [
        pair
        for pair in zip(table.rows[::-1], runs[::-1], strict=True)
        if pair[0].facts["status"] != "up_to_date"
    ]
    rows = [row for row, _ in pairs]
    points = [
        Point(
            f"{row.facts['run_id']}, {row.facts['outcome']}",
            RUN_TONES[row.facts["status"]],
            hrefs[row.facts["run_id"]],
        )
        for row in rows
    ]
    charts: dict[str, list[Series]] = {}
    for name in _shown_metrics(table):
        checks = [_limit(run, name) for _, run in pairs]
        texts = [check.limit_text for check in checks if check and check.limit_text]
        limit = formats.limit_text(f"limit {texts[-1]}") if texts else ""
        charts[name] = [
            _series(name, [row.metrics.get(name) for row in rows], 0, points),
            _series(limit, [float(x.limit or 0) if x else None for x in checks], 4),
        ]
    splits = list(dict.fromkeys(name for row in rows for name in row.examples))
    charts["Examples"] = [
        _series(name, [row.examples.get(name) for row in rows], style)
        for style, name in enumerate(splits[:5])
    ]
    drifts = [_drift(run) for _, run in pairs]
    charts["Drift: distance relative to its limit"] = [
        _series("largest of a feature", drifts, 0, points),
        _series("limit", [None if drift is None else 1.0 for drift in drifts], 4),
    ]
    durations = [row.facts["duration_s"] for row in rows]
    charts["Duration in seconds"] = [_series("duration", durations, 0, points)]
    axes = Axis("run, the oldest first", low=1, high=len(rows), whole=True), Axis()
    return [
        (title, line_chart(f"{title}, over the runs", [x for x in lines if x.x], *axes))
        for title, lines in charts.items()
        if any(len(line.x) > 1 for line in lines)
    ]


def _limit(run: RunData, metric: str) -> Check | None:
    """Returns the check of a metric's value on all examples against a number."""
    rows = run.record.gate_rows("model")
    found = (
        x for x in rows if (x.check, x.slice) == (metric, OVERALL) and x.comparison
    )
    return next(found, None)


def _series(
    name: str,
    values: Sequence[float | None],
    style: int,
    points: Sequence[Point] = (),
) -> Series:
    """Returns a line over the runs that have a value."""
    known = [i for i, value in enumerate(values) if value is not None]
    states = [points[i] for i in known] if points else ()
    return Series(
        name, [i + 1 for i in known], [values[i] for i in known], style, points=states
    )


def _shown_metrics(table: RunTable) -> list[str]:
    # What counts examples is no metric that one compares.
    names = [name for name in table.metrics if not name.endswith("example_count")]
    return names[:_MAX_METRICS]


def _table(table: RunTable, hrefs: Mapping[str, str | None]) -> Table:
    metrics, parameters = _shown_metrics(table), table.parameters[:_MAX_PARAMETERS]
    header: Header = ["Run", "Started", "Verdict", numbers("Version")]
    header += map(numbers, metrics)
    header += [numbers("Examples"), numbers("Duration", format=formats.seconds)]
    header += [*map(Column, parameters), "Tags"]
    rows = [
        (
            _link(hrefs[row.facts["run_id"]], row.facts["run_id"]),
            formats.time(row.facts["started_at"]),
            Mark(RUN_TONES[row.facts["status"]], row.facts["outcome"]),
            row.facts["version"],
            *(row.metrics.get(name) for name in metrics),
            sum(row.examples.values()) or None,
            row.facts["duration_s"],
            *(formats.shorten(row.parameters.get(x, ""), 60) for x in parameters),
            formats.tags_text(row.facts["tags"]),
        )
        for row in table.rows
    ]
    return Table("runs", formats.plural(len(rows), "run"), header, rows)


def _link(href: str | None, run_id: str) -> str | Markup:
    link = Markup('<a href="{}" class="one-line">{}</a>')
    return run_id if href is None else link.format(href, formats.visible(run_id))


def _report(run: RunData) -> str | None:
    run_id, run_dir = run.record.run_id, run.run_dir
    # Relative to the workspace's folder, so that it can be moved.
    href = f"{run_dir.parent.name}/{run_id}/{REPORT_FILE}"
    return href if (run_dir / REPORT_FILE).exists() else None
