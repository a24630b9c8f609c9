"""Renders the verdict of a gate as a table, with example records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from runners.cli.rich_console import make_table, plain, say
from sluice.record.verdict import Check, Verdict, cell

MAX_ROWS = 40
MAX_DETAILS = 10
_COLUMNS = ("check", "slice", "limit", "baseline", "actual", "result", "why")
# Wrapped in a narrow terminal; numbers and results never are.
_FOLDED = ("check", "limit", "baseline", "why")
_STYLES = {"pass": "green", "FAIL": "bold red", "warn": "yellow", "ignored": "dim"}
_ORDER = ("FAIL", "warn", "ignored", "pass")


def print_verdict(console: Console, gate: dict[str, Any]) -> None:
    """Prints the checks of a gate as a table, then their examples.

    At most ``MAX_ROWS`` checks are printed, ``MAX_DETAILS`` of them with examples;
    failed ones first.
    """
    verdict = Verdict.from_dict(gate)
    rows, hidden = _first(verdict.rows, MAX_ROWS)
    result = "passed" if verdict.passed else "not passed"
    if verdict.override is not None:
        result = f"accepted by hand: {verdict.override}"
    say(console, f"{verdict.gate} gate: {result}", "bold")
    table = make_table(*_COLUMNS, folded=_FOLDED)
    for row in rows:
        numbers = (cell(value) for value in (row.limit_text, row.baseline, row.actual))
        outcome = plain(row.result, _STYLES[row.result])
        # With examples, the policy is printed beside them.
        why = row.why if row.examples else f"{row.why}{_policy(row)}"
        table.add_row(row.check, row.slice, *numbers, outcome, why)
    console.print(table)
    if hidden:
        say(console, f"and {_described(hidden)} more: see run.json", "dim")
    shown, hidden = _first([row for row in rows if row.examples], MAX_DETAILS)
    for row in shown:
        head = f"{row.result}: {row.check}, {row.slice}{_policy(row)}"
        say(console, head, _STYLES[row.result])
        for example in row.examples:
            say(console, f"  - {example}")
    if hidden:
        say(console, f"likewise {_described(hidden)}: see run.json", "dim")
    if verdict.override is not None:
        say(console, f"the reason: {verdict.override}", "bold yellow")


def _first(rows: Sequence[Check], limit: int) -> tuple[list[Check], list[Check]]:
    """Returns the worst rows in their original order, and the other rows."""
    ranked = sorted(range(len(rows)), key=lambda i: _ORDER.index(rows[i].result))
    kept, hidden = sorted(ranked[:limit]), sorted(ranked[limit:])
    return [rows[i] for i in kept], [rows[i] for i in hidden]


def _described(rows: Sequence[Check]) -> str:
    """Returns ``12 FAIL, 3 pass``."""
    counts = {name: sum(row.result == name for row in rows) for name in _ORDER}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def _policy(row: Check) -> str:
    return f"   ({row.policy})" if row.policy else ""
