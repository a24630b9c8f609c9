"""Draws the verdict of a gate: a table, and what lies behind its rows."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from runners.cli.console import plain
from sluice.verdict import Check, Verdict, cell

_STYLES = {"pass": "green", "FAIL": "bold red", "warn": "yellow", "ignored": "dim"}


def print_verdict(console: Console, gate: dict[str, Any]) -> None:
    """Prints a gate's rows, then the examples of those that were not as they should.

    Args:
      console: for people.
      gate: as the run's record has it.
    """
    verdict = Verdict.from_dict(gate)
    console.print(_table(verdict))
    for row in verdict.rows:
        if row.examples:
            policy = f"   ({row.policy})" if row.policy else ""
            style = _STYLES[row.result]
            head = f"{row.result}: {row.check}, {row.slice}{policy}"
            console.print(plain(head, style), soft_wrap=True)
            for example in row.examples:
                console.print(plain(f"  - {example}"), soft_wrap=True)
    if verdict.override is not None:
        text = f"accepted by hand: {verdict.override}"
        console.print(plain(text, "bold yellow"), soft_wrap=True)


def _table(verdict: Verdict) -> Table:
    result = "passed" if verdict.passed else "not passed"
    table = Table(
        title=plain(f"{verdict.gate} gate: {result}", "bold"),
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
    )
    for column in ("check", "slice", "limit", "baseline", "actual", "result", "why"):
        table.add_column(column, header_style="dim", no_wrap=column != "why")
    for row in verdict.rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: Check) -> list[Any]:
    return [
        plain(row.check),
        plain(row.slice),
        plain(cell(row.limit)),
        plain(cell(row.baseline)),
        plain(cell(row.actual)),
        plain(row.result, _STYLES[row.result]),
        plain(row.why),
    ]
