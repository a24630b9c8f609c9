"""Tables of runs, versions and spans, with links to their pages."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from urllib.parse import quote

from markupsafe import Markup

from reports.formats import seconds, shorten, time, visible
from reports.index_page import Index, make_index
from reports.read_run import RunData
from reports.run_table import RunTable, make_run_table
from reports.run_values import duration_s, outcome, version
from reports.tables import Column, Header, Mark, Table, numbers
from runners.operations.find_run import FoundRun
from runners.operations.models import ListedModel
from runners.ui.run_view import now_utc, remark
from sluice.record.run_record import RunRecord
from sluice.record.states import RUN_TONES


def link(url: str, text: object) -> Markup:
    """Returns a link; both are escaped, and the text is made visible."""
    return Markup('<a href="{}">{}</a>').format(url, visible(text))


def when(at: str | None) -> Markup:
    """Returns a time, which is not wrapped."""
    return Markup("<time>{}</time>").format(time(at))


def pipeline_url(name: str) -> str:
    """Returns the address of a pipeline's page."""
    return f"/pipelines/{quote(name, safe='')}"


def run_url(found: FoundRun) -> str:
    """Returns the address of a run's page, a folder as the run's own."""
    name, run_id = found.workspace.root.name, found.record.run_id
    return f"{pipeline_url(name)}/runs/{quote(run_id, safe='')}/"


def read_rows(runs: Iterable[FoundRun]) -> RunTable:
    """Returns what the documents of some runs say."""
    return make_run_table(RunData(item.run_dir, item.record) for item in runs)


def pipeline_table(last_runs: Sequence[FoundRun]) -> Table:
    """Returns a row for each pipeline, with its last run."""
    rows = [
        [
            link(pipeline_url(item.workspace.root.name), item.workspace.root.name),
            *_run_cells(item),
            _remark(item.record),
        ]
        for item in last_runs
    ]
    columns: Header = ["Pipeline", "Last run", "Verdict", numbers("Version"), "Started"]
    columns += [numbers("Duration", format=seconds), "Remark"]
    return Table("pipelines", "Pipelines", columns, rows)


def run_index(runs: Sequence[FoundRun]) -> Index:
    """Returns table and trends of a pipeline's runs, as on the page of all runs."""
    ids = {item.record.run_id: item for item in runs}

    def to_page(run: RunData) -> Markup:
        return link(run_url(ids[run.record.run_id]), run.record.run_id)

    index = make_index([RunData(x.run_dir, x.record) for x in runs], to_page)
    columns: Header = [*index.table.columns, "Remark"]
    pairs = zip(index.table.rows, runs, strict=True)
    rows = [[*row, _remark(item.record)] for row, item in pairs]
    return replace(index, table=replace(index.table, header=columns, rows=rows))


def _run_cells(found: FoundRun) -> list[object]:
    record = found.record
    return [
        link(run_url(found), record.run_id),
        Mark(RUN_TONES[record.status], outcome(record)),
        version(record),
        when(record.started_at),
        duration_s(record, now_utc()),
    ]


def _remark(record: RunRecord) -> str:
    """Returns what a run does now, or why it has failed."""
    if record.error:
        return shorten(record.error.message.partition("\n")[0], 100)
    running = [node for node in record.nodes if node.state == "running"]
    return "; ".join(f"{node.id} {remark(node)}".rstrip() for node in running)


def version_table(
    listed: Sequence[ListedModel], runs: Sequence[FoundRun], table: RunTable
) -> Table:
    """Returns a row for each pushed version, with the metrics of its run."""
    urls = {item.record.run_id: run_url(item) for item in runs}
    metrics = {row.run_id: row.metrics for row in table.rows}
    rows = []
    for item in listed:
        pushed = item.version
        run_id = str(pushed.facts.get("pipeline_run_id") or "")
        url, values = urls.get(run_id), metrics.get(run_id, {})
        flaws = ", ".join(item.flaws)
        rows.append(
            [
                pushed.version,
                Mark("warn", flaws) if flaws else Mark("good", "ok"),
                when(pushed.published_at),
                link(url, run_id) if url else run_id,
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
        [
            *key,
            len(found),
            link(run_url(found[-1]), found[-1].record.run_id),
            link(run_url(found[0]), found[0].record.run_id),
        ]
        for key, found in ordered
    ]
    columns: Header = ["Input", numbers("Span"), numbers("Version"), "Date"]
    columns += [numbers("Runs"), "First run", "Last run"]
    return Table("spans", "Spans that were read", columns, rows) if rows else None


def example_table(runs: Sequence[FoundRun], table: RunTable) -> Table | None:
    """Returns the number of examples per split of each run that has counted them."""
    splits = list(dict.fromkeys(name for row in table.rows for name in row.examples))
    rows = [
        [
            link(run_url(item), row.run_id),
            when(row.started_at),
            *(row.examples.get(name) for name in splits),
        ]
        for item, row in zip(runs, table.rows, strict=True)
        if row.examples
    ]
    columns: Header = ["Run", "Started", *map(numbers, splits)]
    return Table("examples", "Examples per split", columns, rows) if rows else None
