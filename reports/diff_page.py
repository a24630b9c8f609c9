"""Two runs compared, as tables for the terminal and as a page."""

from __future__ import annotations

from itertools import islice

from reports import formats
from reports.compare import Comparison, summarize_changes
from reports.environment import render_page
from reports.evaluation import OVERALL
from reports.feature_statistics import statistics
from reports.sections import curves, features
from reports.tables import Header, Table, numbers

_MAX_CHARTS = 10
_ORDER = ("worse", "better", "differs", "same")


def diff_tables(comparison: Comparison, *, all_metrics: bool = True) -> list[Table]:
    """Returns a table per kind of difference; kinds without one are left out.

    Args:
      comparison: of the two runs.
      all_metrics: whether metrics that are the same are listed too.
    """
    moved = []
    for item in comparison.features:
        # What is present follows from what is missing, and the number of examples.
        texts = [str(x) for x in item.statistics if x.name != "present"]
        moved.append((item.feature, item.split, item.shift, ", ".join(texts)))
    header = ("feature", "split", numbers("shift"), "changes")
    caption = "Features with other statistics, the largest shift first"
    tables = [
        Table("runs", "The two runs", ("", "before", "after"), _runs(comparison)),
        _metrics(comparison, all_metrics),
        Table("features", caption, header, moved),
    ]
    for kind, items in comparison.changes.items():
        rows = [(item.name, *item.texts) for item in items]
        caption = f"{kind.capitalize()}: {formats.plural(len(rows), 'difference')}"
        tables.append(Table(kind, caption, ("name", "before", "after"), rows))
    return [table for table in tables if table.rows]


def _runs(comparison: Comparison) -> list[list[str]]:
    shown = {
        "run": lambda side: side["run_id"],
        "verdict": lambda side: side["outcome"],
        "version": lambda side: formats.number(side["version"]),
        "started": lambda side: formats.time(side["started_at"]),
        "time": lambda side: formats.seconds(side["duration_s"]),
        "tags": lambda side: formats.tags_text(side["tags"]) or formats.MISSING,
    }
    sides = comparison.before, comparison.after
    return [[name, *map(text, sides)] for name, text in shown.items()]


def _metrics(comparison: Comparison, all_metrics: bool) -> Table:
    shown = sorted(
        (x for x in comparison.metrics if all_metrics or x.outcome != "same"),
        key=lambda item: (item.slice != OVERALL, _ORDER.index(item.outcome)),
    )
    header: Header = ["slice", "metric"]
    header += [numbers("before"), numbers("after"), numbers("change")]
    rows = [(x.slice, x.metric, x.before, x.after, x.change) for x in shown]
    return Table("metrics", "Metrics of the candidate", header, rows)


def render_diff(comparison: Comparison) -> str:
    """Returns a page with what differs between two runs; it looks as a run's page."""
    tables = {table.id: table for table in diff_tables(comparison)}
    runs = tables.pop("runs")
    first = {
        "metrics": None,
        "predictions": comparison.flips,
        "distributions": _distributions(comparison),
    }
    return render_page(
        "diff.html.j2",
        comparison=comparison,
        summary=summarize_changes(comparison),
        runs=runs,
        sections={name: part for name, part in {**first, **tables}.items() if part},
    )


def _distributions(comparison: Comparison) -> curves.Charts:
    """Returns the features that differ most, with the values of both runs."""
    before, after = (
        {(x.split, item.name): item for x in statistics(run) for item in x.features}
        for run in comparison.runs
    )
    splits: dict[str, str] = {}
    for item in comparison.features:
        splits.setdefault(item.feature, item.split)
    drawn = []
    for name, split in islice(splits.items(), _MAX_CHARTS):
        sides = {"after": after.get((split, name)), "before": before.get((split, name))}
        data = {side: item for side, item in sides.items() if item}
        chart, _ = features.chart(features.Feature(name, data))
        drawn += [(f"{name} of {split}", chart)] if chart else []
    return drawn
