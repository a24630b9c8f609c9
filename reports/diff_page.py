"""Two runs compared, as a page and as Markdown."""

from __future__ import annotations

import html
import re

from reports.compare import Comparison, summarize_changes
from reports.diff_tables import diff_tables
from reports.environment import render_page
from reports.formats import visible
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
        f"### {_cell(after['pipeline'])}: {after['outcome']}, run {after['run_id']}",
        "",
        f"Compared with run {before['run_id']} ({before['outcome']}).",
        "",
    ]
    lines += [f"- {_cell(line)}" for line in summarize_changes(found)] or [
        "Nothing that has an effect on the model differs."
    ]
    for table in diff_tables(found, all_metrics=False):
        lines += ["", *_table(table)]
    return "\n".join(lines) + "\n"


def _table(table: Table) -> list[str]:
    is_open = " open" if table.id in _OPEN else ""
    rows = [
        [column.label for column in table.columns],
        ["---:" if column.format else "---" for column in table.columns],
    ]
    for row in table.rows[:_MAX_ROWS]:
        cells = zip(table.columns, row, strict=True)
        rows.append([_cell(column.text(value)) for column, value in cells])
    lines = [f"<details{is_open}>", f"<summary>{table.caption}</summary>", ""]
    lines += [f"| {' | '.join(cells)} |" for cells in rows]
    if len(table.rows) > _MAX_ROWS:
        lines += ["", f"and {len(table.rows) - _MAX_ROWS} more"]
    return [*lines, "", "</details>"]


def _cell(text: str) -> str:
    """Escapes text from data or config for a cell: it is neither Markdown nor HTML."""
    line = " ".join(visible(text).split())
    escaped = _MARKDOWN.sub(r"\\\1", html.escape(line, quote=False))
    # GitHub notifies whom a comment mentions, except in code.
    return f"<code>{escaped}</code>" if "@" in escaped else escaped
