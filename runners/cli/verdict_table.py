"""Draws the verdict of a gate as a table."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from runners.cli.console import plain
from sluice.verdict import cell


def verdict_table(gate: dict[str, Any]) -> Table:
    """Returns one gate's rows, its result in the title."""
    result = "passed" if gate["passed"] else "not passed"
    table = Table(
        title=plain(f"{gate['gate']} gate: {result}", "bold"),
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
    )
    for column in ("check", "slice", "limit", "baseline", "actual", "result", "why"):
        table.add_column(column, header_style="dim", no_wrap=column != "why")
    for row in gate["rows"]:
        table.add_row(
            plain(row["check"]),
            plain(row["slice"]),
            plain(cell(row["limit"])),
            plain(cell(row["baseline"])),
            plain(cell(row["actual"])),
            plain("pass", "green") if row["passed"] else plain("FAIL", "bold red"),
            plain(row["why"]),
        )
    return table
