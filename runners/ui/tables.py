"""Tables of runs, versions and spans, with links to their pages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from reports.formats import time, visible
from reports.index_page import make_index
from reports.read_run import RunData
from reports.run_table import make_run_table
from reports.tables import Column, Header, Mark, Table, numbers
from runners.operations.find_run import FoundRun
from runners.operations.models import ListedModel


def _link(url: str, text: object) -> Markup:
    return Markup('<a href="{}">{}</a>').format(url, visible(text))


def pipeline_url(name: str) -> str:
    """Returns the address of a pipeline's page."""
    return f"/pipelines/{quote(name, safe='')}"


def run_url(found: FoundRun) -> str:
    """Returns the address of a run's page, a folder as the run's own."""
    return f"{pipeline_url(found.name)}/runs/{quote(found.record.run_id, safe='')}/"


def _run_link(found: FoundRun) -> Markup:
    return _link(run_url(found), found.record.run_id)


def run_index(runs: Sequence[FoundRun]) -> dict[str, Any]:
    """Returns table and trends of a pipeline's runs, as on the page of all runs."""
    urls = {item.record.run_id: run_url(item) for item in runs}
    data = [RunData(item.run_dir, item.record) for item in runs]
    return make_index(data, lambda run: urls[run.record.run_id])


def version_table(listed: Sequence[ListedModel], runs: Sequence[FoundRun]) -> Table:
    """Returns a row for each pushed version, with the metrics of its run."""
    links = {item.record.run_id: _run_link(item) for item in runs}
    table = make_run_table(RunData(item.run_dir, item.record) for item in runs)
    metrics = {row.facts["run_id"]: row.metrics for row in table.rows}
    rows = []
    for item in listed:
        pushed, flaws = item.version, ", ".join(item.flaws)
        run_id = str(pushed.facts.get("pipeline_run_id") or "")
        values = metrics.get(run_id, {})
        rows.append(
            [
                pushed.version,
                Mark("warn", flaws) if flaws else Mark("good", "ok"),
                time(pushed.published_at),
                links.get(run_id, run_id),
                *(values.get(name) for name in table.metrics),
                (pushed.digest or "")[:12],
            ]
        )
    columns: Header = [numbers("Version"), "State", "Published", "Run"]
    columns += map(numbers, table.metrics)
    columns.append(Column("Digest", code=True))
    where = os.path.dirname(listed[0].version.uri) if listed else ""
    return Table("versions", f"Versions in {where}, newest first", columns, rows)


def span_table(runs: Sequence[FoundRun]) -> Table | None:
    """Returns a row for each span that a run has read, the newest first."""
    readers: dict[tuple[str, int, int | None, str | None], list[FoundRun]] = {}
    for item in runs:
        for name, spans in item.record.spans.items():
            for span in spans:
                key = (name, span["span"], span["version"], span["date"])
                readers.setdefault(key, []).append(item)
    ordered = sorted(readers.items(), key=lambda pair: (pair[0][0], -pair[0][1]))
    rows = [
        [*key, len(found), _run_link(found[-1]), _run_link(found[0])]
        for key, found in ordered
    ]
    columns: Header = ["Input", numbers("Span"), numbers("Version"), "Date"]
    columns += [numbers("Runs"), "First run", "Last run"]
    return Table("spans", "Spans that were read", columns, rows) if rows else None
