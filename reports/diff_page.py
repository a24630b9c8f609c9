"""Two runs compared, as a page and as Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from reports.compare import Comparison
from reports.diff_tables import diff_tables
from reports.environment import render_page
from reports.formats import visible
from reports.summarize_changes import summarize_changes
from reports.tables import Table

_MAX_ROWS = 50
_OPEN = ("runs", "config", "gates", "metrics")
_MARKDOWN = re.compile(r"([\\`*_\[\]|~#])")


def render_diff(found: Comparison) -> str:
    """Returns a page with what differs between two runs; it looks as a run's page."""
    return render_page(
        "diff.html.j2",
        found=found,
        summary=summarize_changes(found),
        tables=diff_tables(found),
    )


def diff_markdown(found: Comparison) -> str:
    """Returns GitHub's Markdown, such as for a comment on a pull request.

    Of each table at most 50 rows are listed.
    """
    before, after = found.before, found.after
    lines = [
        f"### {_cell(after.pipeline)}: {after.outcome}, run {after.run_id}",
        "",
        f"Compared with run {before.run_id} ({before.outcome}).",
        "",
    ]
    lines += [f"- {_cell(line)}" for line in summarize_changes(found)] or [
        "Nothing that has an effect on the model differs."
    ]
    for table in diff_tables(found, all_metrics=False):
        lines += ["", *_table(table)]
    return "\n".join(lines) + "\n"


def _table(table: Table) -> list[str]:
    headers = [
        f"{column.label} ({column.unit})" if column.unit else column.label
        for column in table.columns
    ]
    lines = [
        f"<details{' open' if table.id in _OPEN else ''}>",
        f"<summary>{table.caption}</summary>",
        "",
        _row(headers),
        _row(["---:" if column.format else "---" for column in table.columns]),
    ]
    for row in table.rows[:_MAX_ROWS]:
        texts = (
            column.text(value) for column, value in zip(table.columns, row, strict=True)
        )
        lines.append(_row(_cell(text) for text in texts))
    if len(table.rows) > _MAX_ROWS:
        lines += ["", f"and {len(table.rows) - _MAX_ROWS} more"]
    return [*lines, "", "</details>"]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """Escapes text from data or config for a cell: it is neither Markdown nor HTML."""
    line = " ".join(visible(text).split())
    escaped = _MARKDOWN.sub(r"\\\1", html.escape(line, quote=False))
    # GitHub notifies whom a comment mentions, except in code.
    return f"<code>{escaped}</code>" if "@" in escaped else escaped
