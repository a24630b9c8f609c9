"""Renders the verdict of a gate as a table, with example records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from runners.cli.rich_console import make_table, plain, print_line
from sluice.record.verdict import Check, Verdict, cell

MAX_ROWS = 40
MAX_DETAILS = 10
_MIN_WHY = 36
_COLUMNS = ("check", "slice", "limit", "baseline", "actual", "result")
# Wrapped in a narrow terminal; numbers and results never are.
_FOLDED = ("check", "limit", "baseline")
_STYLES = {"pass": "green", "FAIL": "bold red", "warn": "yellow", "ignored": "dim"}
_ORDER = ("FAIL", "warn", "ignored", "pass")


def print_verdict(console: Console, gate: dict[str, Any]) -> None:
    """Prints the checks of a gate as a table, then their examples.

    At most ``MAX_ROWS`` checks are printed, ``MAX_DETAILS`` of them with examples;
    failed ones first. In a narrow terminal the reasons are printed below the table.
    """
    verdict = Verdict.from_dict(gate)
    rows, hidden = _first(verdict.rows, MAX_ROWS)
    is_wide = _width(rows) + _MIN_WHY <= console.width
    console.print(_table(verdict, rows, is_wide))
    if hidden:
        text = f"and {_described(hidden)} more: see run.json"
        console.print(plain(text, "dim"))
    detailed = [row for row in rows if row.examples or (row.why and not is_wide)]
    shown, hidden = _first(detailed, MAX_DETAILS)
    for row in shown:
        _print_details(console, row, is_wide)
    if hidden:
        text = f"likewise {_described(hidden)}: see run.json"
        console.print(plain(text, "dim"))
    if verdict.override is not None:
        print_line(console, f"the reason: {verdict.override}", "bold yellow")


def _first(rows: Sequence[Check], limit: int) -> tuple[list[Check], list[Check]]:
    """Returns the worst rows in their original order, and the other rows."""
    ranked = sorted(range(len(rows)), key=lambda i: _ORDER.index(rows[i].result))
    kept, hidden = sorted(ranked[:limit]), sorted(ranked[limit:])
    return [rows[i] for i in kept], [rows[i] for i in hidden]


def _described(rows: Sequence[Check]) -> str:
    """Returns ``12 FAIL, 3 pass``."""
    counts = {name: sum(row.result == name for row in rows) for name in _ORDER}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def _print_details(console: Console, row: Check, is_wide: bool) -> None:
    head = f"{row.result}: {row.check}, {row.slice}"
    if row.why and not is_wide:
        head += f": {row.why}"
    head += _policy(row)
    print_line(console, head, _STYLES[row.result])
    for example in row.examples:
        print_line(console, f"  - {example}")


def _table(verdict: Verdict, rows: Sequence[Check], is_wide: bool) -> Table:
    result = "passed" if verdict.passed else "not passed"
    if verdict.override is not None:
        result = "accepted by hand"
    title = plain(f"{verdict.gate} gate: {result}", "bold")
    table = make_table(title=title, title_justify="left")
    for column in _COLUMNS:
        table.add_column(column, no_wrap=column not in _FOLDED, overflow="fold")
    if is_wide:
        table.add_column("why")
    for row in rows:
        *cells, outcome = map(plain, _cells(row))
        outcome.stylize(_STYLES[row.result])
        # With examples, the policy is printed beside them.
        why = row.why if row.examples else f"{row.why}{_policy(row)}"
        table.add_row(*cells, outcome, *([plain(why)] if is_wide else []))
    return table


def _width(rows: Sequence[Check]) -> int:
    """Returns the width of the table without the column of reasons."""
    lines = [_COLUMNS, *map(_cells, rows)]
    return sum(max(map(cell_len, column)) + 2 for column in zip(*lines, strict=True))


def _cells(row: Check) -> tuple[str, ...]:
    numbers = (cell(value) for value in (row.limit, row.baseline, row.actual))
    return (row.check, row.slice, *numbers, row.result)


def _policy(row: Check) -> str:
    return f"   ({row.policy})" if row.policy else ""
