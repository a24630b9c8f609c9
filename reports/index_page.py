"""The page of a pipeline's runs: trends over the runs, and a link to each report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from markupsafe import Markup

from reports import formats
from reports.charts.lines import Series, line_chart
from reports.charts.scale import Axis
from reports.environment import render_page
from reports.read_run import RunData
from reports.run_page import REPORT_FILE
from reports.run_table import RunRow, RunTable, make_run_table
from reports.run_values import tags_text
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
    index = make_index(shown, _report_link)
    limit = MAX_RUNS if len(shown) == MAX_RUNS else None
    return render_page("index.html.j2", pipeline=pipeline, index=index, limit=limit)


@dataclass(frozen=True)
class Index:
    """Runs of a pipeline.

    Attributes:
      table: a row for each.
      charts: title and chart of each quantity that two runs have.
    """

    table: Table
    charts: list[tuple[str, Markup]]


def make_index(
    runs: Sequence[RunData], link: Callable[[RunData], str | Markup]
) -> Index:
    """Returns table and trends of runs, the newest first; ``link`` shows an id."""
    table = make_run_table(runs)
    # An unchanged run repeats the numbers of the run before.
    oldest_first = [row for row in table.rows[::-1] if row.status != "up_to_date"]
    drift = {run.record.run_id: _drift(run) for run in runs}
    charts = _charts(table, oldest_first, drift)
    return Index(_table(table, [link(run) for run in runs]), charts)


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
    table: RunTable, rows: Sequence[RunRow], drift: Mapping[str, float | None]
) -> list[tuple[str, Markup]]:
    splits = list(dict.fromkeys(name for row in rows for name in row.examples))
    examples = [(name, [row.examples.get(name) for row in rows]) for name in splits[:4]]
    charts: dict[str, list[tuple[str, list]]] = {
        name: [("", [row.metrics.get(name) for row in rows])]
        for name in _shown_metrics(table)
    } | {
        "Examples": examples,
        "Drift: distance relative to its limit": [
            ("", [drift[x.run_id] for x in rows])
        ],
        "Duration in seconds": [("", [row.duration_s for row in rows])],
    }
    return [
        (name, _chart(name, lines))
        for name, lines in charts.items()
        if any(len([v for v in values if v is not None]) > 1 for _, values in lines)
    ]


def _shown_metrics(table: RunTable) -> list[str]:
    # What counts examples is no metric that one compares.
    names = [name for name in table.metrics if not name.endswith("example_count")]
    return names[:_MAX_METRICS]


def _chart(title: str, lines: list[tuple[str, list]]) -> Markup:
    series = [
        Series(
            name,
            [i + 1 for i, value in enumerate(values) if value is not None],
            [value for value in values if value is not None],
            style,
        )
        for style, (name, values) in enumerate(lines)
    ]
    count = len(lines[0][1])
    x = Axis("run, the oldest first", low=1, high=count, whole=True)
    return line_chart(f"{title}, over the runs", series, x, Axis())


def _table(table: RunTable, links: Sequence[str | Markup]) -> Table:
    metrics = _shown_metrics(table)
    parameters = table.parameters[:_MAX_PARAMETERS]
    columns: Header = [
        "Run",
        "Started",
        "Verdict",
        numbers("Version"),
        *(numbers(name) for name in metrics),
        numbers("Examples"),
        numbers("Duration", format=formats.seconds),
        *(Column(name) for name in parameters),
        "Tags",
    ]
    return Table(
        id="runs",
        caption=formats.plural(len(table.rows), "run"),
        header=columns,
        rows=[
            (
                link,
                formats.time(row.started_at),
                Mark(RUN_TONES[row.status], row.verdict),
                row.version,
                *(row.metrics.get(name) for name in metrics),
                sum(row.examples.values()) or None,
                row.duration_s,
                *(formats.shorten(row.parameters.get(x, ""), 60) for x in parameters),
                tags_text(row.tags),
            )
            for link, row in zip(links, table.rows, strict=True)
        ],
    )


def _report_link(run: RunData) -> str | Markup:
    run_id, run_dir = run.record.run_id, run.run_dir
    if not (run_dir / REPORT_FILE).exists():
        return run_id
    # Relative to the workspace's folder, so that it can be moved.
    href = f"{run_dir.parent.name}/{run_id}/{REPORT_FILE}"
    return Markup('<a href="{}">{}</a>').format(href, run_id)
