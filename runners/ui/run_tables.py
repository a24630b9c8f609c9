"""Tables of runs, versions and spans, with links to their pages."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from markupsafe import Markup

from reports.formats import seconds, time
from reports.read_run import RunData
from reports.run_values import OVERALL, duration_s, examples, metrics, outcome, version
from reports.tables import Column, Mark, Table, numbers
from runners.operations.find_run import FoundRun
from runners.operations.models import ListedModel
from runners.ui.run_view import describe_progress, since_s
from sluice.record.run_record import RunRecord
from sluice.record.states import RUN_TONES


def link(url: str, text: object) -> Markup:
    """Returns a link; both are escaped."""
    return Markup('<a href="{}">{}</a>').format(url, text)


def when(at: str | None) -> Markup:
    """Returns a time, which is not wrapped."""
    return Markup("<time>{}</time>").format(time(at))


def pipeline_url(name: str) -> str:
    """Returns the address of a pipeline's page."""
    return f"/pipelines/{quote(name, safe='')}"


def run_url(found: FoundRun) -> str:
    """Returns the address of a run's page."""
    name, run_id = found.workspace.root.name, found.record.run_id
    return f"{pipeline_url(name)}/runs/{quote(run_id, safe='')}"


def pipeline_table(last_runs: Sequence[FoundRun]) -> Table:
    """Returns a row for each pipeline, with its last run."""
    rows = [
        [
            link(pipeline_url(item.workspace.root.name), item.workspace.root.name),
            *_run_cells(item),
        ]
        for item in last_runs
    ]
    columns = [Column("pipeline"), Column("last run"), *_RUN_COLUMNS]
    return Table("pipelines", "Pipelines", columns, rows)


def run_table(runs: Sequence[FoundRun]) -> Table:
    """Returns a row for each run of a pipeline."""
    rows = [_run_cells(item) for item in runs]
    return Table("runs", "Runs", [Column("run"), *_RUN_COLUMNS], rows)


_RUN_COLUMNS = (
    Column("outcome"),
    numbers("version"),
    Column("started"),
    numbers("took", format=seconds),
    Column("remark"),
)


def _run_cells(found: FoundRun) -> list[object]:
    record = found.record
    tone = RUN_TONES[record.status]
    return [
        link(run_url(found), record.run_id),
        Mark(tone, outcome(record)),  # type: ignore[arg-type]
        version(record),
        when(record.started_at),
        since_s(record.started_at, None)
        if record.status == "running"
        else duration_s(record),
        _remark(record),
    ]


def _remark(record: RunRecord) -> str:
    """Returns what a run does now, or why it has failed."""
    if record.error:
        return record.error.message.partition("\n")[0]
    running = [node for node in record.nodes if node.state == "running"]
    return "; ".join(
        f"{node.id} {describe_progress(node.progress or {})}".rstrip()
        for node in running
    )


def version_table(listed: Sequence[ListedModel], runs: Sequence[FoundRun]) -> Table:
    """Returns a row for each pushed version."""
    urls = {item.record.run_id: run_url(item) for item in runs}
    rows = [
        [
            item.version.version,
            Mark("warn", ", ".join(item.flaws)) if item.flaws else Mark("good", "ok"),
            when(item.version.published_at),
            _run_link(urls, item.version.facts.get("pipeline_run_id")),
            (item.version.digest or "")[:12],
            str(item.version.path),
        ]
        for item in listed
    ]
    columns = [numbers("version"), Column("state"), Column("published"), Column("run")]
    columns += [Column("digest", code=True), Column("path", code=True)]
    return Table("versions", "Pushed versions, newest first", columns, rows)


def _run_link(urls: dict[str, str], run_id: object) -> object:
    """Returns a run's id, as a link if the run is still there."""
    url = urls.get(str(run_id))
    return link(url, run_id) if url else run_id


def metric_table(runs: Sequence[FoundRun]) -> Table | None:
    """Returns a row for each run with an evaluation; metrics on all examples."""
    values = {
        item.record.run_id: {
            name: value
            for (where, name), value in metrics(
                RunData(item.run_dir, item.record)
            ).items()
            if where == OVERALL
        }
        for item in runs
    }
    names = list(dict.fromkeys(name for row in values.values() for name in row))
    rows = [
        [
            link(run_url(item), item.record.run_id),
            outcome(item.record),
            version(item.record),
            *(values[item.record.run_id].get(name) for name in names),
        ]
        for item in runs
        if values[item.record.run_id]
    ]
    columns = [Column("run"), Column("outcome"), numbers("version")]
    columns += [numbers(name) for name in names]
    caption = "Models of the runs, newest first: metrics on all examples"
    return Table("history", caption, columns, rows) if rows else None


def span_table(runs: Sequence[FoundRun]) -> Table | None:
    """Returns a row for each span that a run has read, the newest first."""
    readers: dict[tuple[str, int, int | None, str | None], list[FoundRun]] = {}
    for item in runs:
        for name, spans in item.record.spans.items():
            for span in spans:
                key = (name, span["span"], span["version"], span["date"])
                readers.setdefault(key, []).append(item)
    columns = [Column("input"), numbers("span"), numbers("version"), Column("date")]
    columns += [numbers("runs"), Column("first run"), Column("last run")]
    rows = [
        [
            *key,
            len(found),
            link(run_url(found[-1]), found[-1].record.run_id),
            link(run_url(found[0]), found[0].record.run_id),
        ]
        for key, found in sorted(
            readers.items(), key=lambda pair: (pair[0][0], -pair[0][1])
        )
    ]
    return Table("spans", "Spans that were read", columns, rows) if rows else None


def example_table(runs: Sequence[FoundRun]) -> Table | None:
    """Returns the number of examples per split of each run that has counted them."""
    counts = [(item, examples(RunData(item.run_dir, item.record))) for item in runs]
    names = list(dict.fromkeys(name for _, found in counts for name in found))
    rows = [
        [
            link(run_url(item), item.record.run_id),
            when(item.record.started_at),
            *(found.get(name) for name in names),
        ]
        for item, found in counts
        if found
    ]
    columns = [Column("run"), Column("started"), *map(numbers, names)]
    return Table("examples", "Examples per split", columns, rows) if rows else None
