"""A run in the terminal: a live row per node, or plain lines in a pipe; its result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from reports.formats import limit_text, number, progress, seconds, tags_text
from runners.cli.options import Result, typed_command, wants_json
from runners.cli.rich_console import make_console, make_table, plain, say
from runners.engine import Observer
from sluice.record.outcome import next_steps, overrides, summarize
from sluice.record.parts import ErrorRecord, NodeRecord, PushRecord
from sluice.record.run_record import RunRecord
from sluice.record.states import NODE_STATES, RUN_STYLES
from sluice.record.verdict import Check, Verdict

# Minimum time between two lines of a training's progress in a pipe.
_PLAIN_PROGRESS_S = 10.0


class RunView(Observer):
    """Draws a run in progress; a context manager around the operation.

    On stderr where stdout has the record.
    """

    def __init__(self, console: Console | None = None) -> None:
        console = console or make_console(to_stderr=wants_json())
        self._console = console
        self._record: RunRecord | None = None
        self._notes: dict[str, str] = {}
        self._last_plain_note = -math.inf
        self._live = (
            Live(console=console, get_renderable=self._table, auto_refresh=False)
            if console.is_terminal
            else None
        )

    def __enter__(self) -> RunView:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        if self._live:
            self._live.stop()

    def result(self, record: RunRecord) -> Result:
        """Prints the outcome of the run; returns its record for ``--json``."""
        print_outcome(self._console, record)
        return Result(record.to_dict(), exit_code=record.exit_code or 0)

    def on_begin(self, record: RunRecord) -> None:
        if self._record is None:
            resuming = "resuming " if record.resumed_at else ""
            self._line(f"{record.pipeline}  {resuming}run {record.run_id}", "bold")
        self._record = record
        self._refresh()

    def on_node(self, record: RunRecord, node: NodeRecord) -> None:
        if self._live is None and node.state != "running":
            label, took = NODE_STATES[node.state].label, seconds(node.duration_s, "")
            self._line(f"{node.id:<20} {label:<12} {took:>10}  {node.reason or ''}")
        self._refresh()

    def on_progress(self, node: str, facts: dict[str, Any]) -> None:
        note = "  ".join(progress(facts))
        if not note:
            return
        self._notes[node] = note
        now = time.monotonic()
        due = now - self._last_plain_note >= _PLAIN_PROGRESS_S
        if self._live is None and (due or "line" in facts):
            self._last_plain_note = now
            self._line(f"{node:<20} {note}")

    def on_tick(self) -> None:
        if self._live:
            # Not earlier: lines printed so far must not be drawn over.
            self._live.start()
        self._refresh()

    def on_warning(self, text: str) -> None:
        self._line(f"warning: {text}", "yellow")

    def on_note(self, text: str) -> None:
        self._line(text, "cyan")

    def _refresh(self) -> None:
        if self._live and self._live.is_started:
            self._live.refresh()

    def _line(self, text: str, style: str = "") -> None:
        for line in text.rstrip().split("\n"):
            say(self._console, line, style)

    def _table(self) -> Table:
        nodes = self._record.nodes if self._record else []
        table = make_node_table(nodes, notes=self._notes, is_live=True)
        if not nodes:
            table.add_row(plain("starting: importing TFX", "dim"))
        return table


def show_run(
    operate: Callable[..., RunRecord], *arguments: Any, **options: Any
) -> Result:
    """Shows a run while an operation runs it, and then its outcome."""
    with RunView() as view:
        record = operate(*arguments, command=typed_command(), observer=view, **options)
    return view.result(record)


_NO_NOTES: Mapping[str, str] = {}


def print_run(console: Console, record: RunRecord) -> None:
    """Prints the record of a run, in progress or ended."""
    say(console, f"{record.pipeline}  run {record.run_id}", "bold")
    status = record.status.replace("_", " ")
    say(console, f"status    {status}", RUN_STYLES[record.status])
    say(console, f"started   {record.started_at}")
    for at in record.resumed_at:
        say(console, f"resumed   {at}")
    if record.ended_at:
        say(console, f"ended     {record.ended_at}")
    say(console, f"command   {record.command}")
    if record.tags:
        say(console, f"tags      {tags_text(record.tags)}")
    say(console)
    console.print(make_node_table(record.nodes))
    print_outcome(console, record)


def print_outcome(console: Console, record: RunRecord) -> None:
    """Prints gates, error, push, report and the next command of a run."""
    for verdict in record.gates:
        say(console)
        print_verdict(console, verdict)
    say(console)
    for note in record.notes:
        say(console, f"note: {note}", "yellow")
    is_blocked = record.status == "blocked" and not all(x.passed for x in record.gates)
    if is_blocked or (record.options.trial and record.exit_code == 0):
        _print_next_steps(console, record)
    elif record.error:
        _print_error(console, record.error)
    for push in record.pushes:
        _print_push(console, push)
    if record.report_uri:
        say(console, f"report:  {record.report_uri}")
    if record.resume_command:
        if record.status == "interrupted":
            say(console, "interrupted", "red")
        say(console, f"resume:  {record.resume_command}   (finished nodes are kept)")


def _print_next_steps(console: Console, record: RunRecord) -> None:
    """Prints what became of the run, why, and what to do, as the page has it."""
    _, headline, causes = summarize(record)
    say(console, headline, RUN_STYLES[record.status])
    for cause in causes:
        say(console, f"  - {limit_text(cause)}", "red")
    for style, steps in (("", next_steps(record)), ("dim", overrides(record))):
        for text, command in steps:
            say(console, f"{text}: {command}" if command else text, style)


def _print_error(console: Console, error: ErrorRecord) -> None:
    for line in error.message.splitlines():
        say(console, line, "red")
    for line in error.log_tail:
        say(console, f"  | {line}", "dim")
    if error.log:
        say(console, f"  log:      {error.log}")


def _print_push(console: Console, push: PushRecord) -> None:
    if push.state == "pushed":
        text, style = f"pushed as version {push.version}: {push.uri}", "green"
    elif push.state == "already_served":
        text, style = f"already served as version {push.version}: {push.uri}", "cyan"
    else:
        return
    say(console, text, style)


def make_node_table(
    nodes: Sequence[NodeRecord],
    *,
    notes: Mapping[str, str] = _NO_NOTES,
    is_live: bool = False,
) -> Table:
    """Returns one row per node: state, time and why.

    Args:
      nodes: of the record.
      notes: by node id, the latest progress of a node without a reason.
      is_live: leaves out the header, and the peak memory is not known yet.
    """
    columns = ("node", "state", "time", "peak memory", "why")
    table = make_table(*columns, folded=("why",), show_header=not is_live)
    for node in nodes:
        look, memory = NODE_STATES[node.state], node.peak_memory_bytes
        why = node.reason or notes.get(node.id)
        table.add_row(
            node.id,
            plain(look.label, look.style),
            seconds(_elapsed_s(node), ""),
            f"{memory / 1e9:.1f} GB" if memory else "",
            why or "  ".join(progress(node.progress or {})),
        )
    return table


def _elapsed_s(node: NodeRecord) -> float | None:
    if node.state != "running" or node.started_at is None:
        return node.duration_s
    started = datetime.fromisoformat(node.started_at)
    return (datetime.now(timezone.utc) - started).total_seconds()


MAX_ROWS = 40
MAX_DETAILS = 10
_COLUMNS = (
    "check",
    "slice",
    "limit",
    "baseline",
    "actual",
    "reference",
    "result",
    "why",
)
# Wrapped in a narrow terminal; numbers and results never are.
_FOLDED = ("check", "limit", "baseline", "why")
# The worst first.
_STYLES = {
    "FAIL": "bold red",
    "warn": "yellow",
    "ignored": "dim",
    "pass": "green",
    "yes": "green",
    "no": "dim",
}


def print_verdict(console: Console, verdict: Verdict) -> None:
    """Prints the checks of a gate as a table, then their examples.

    At most ``MAX_ROWS`` checks are printed, ``MAX_DETAILS`` of them with examples;
    failed ones first.
    """
    rows = sorted(verdict.rows, key=lambda row: list(_STYLES).index(row.result))
    result = "passed" if verdict.passed else "not passed"
    if verdict.passed and verdict.gate == "model" and (count := len(verdict.warnings)):
        result = f"passed, with {count:,} warning{'' if count == 1 else 's'}"
    if verdict.gate == "retrain":
        result = "no reason to train" if verdict.skips else "a reason to train"
    if verdict.override is not None:
        result = f"accepted by hand: {verdict.override}"
    say(console, f"{verdict.gate} gate: {result}", "bold")
    has_reference = any(row.reference is not None for row in rows)
    columns = [x for x in _COLUMNS if x != "reference" or has_reference]
    table = make_table(*columns, folded=_FOLDED)
    for row in rows[:MAX_ROWS]:
        limit = row.limit_text and limit_text(row.limit_text)
        values = [limit, row.baseline, row.actual]
        values += [row.reference] if has_reference else []
        outcome = plain(row.result, _STYLES[row.result])
        # With examples, the policy is printed beside them.
        why = row.why if row.examples else f"{row.why}{_policy(row)}"
        table.add_row(row.check, row.slice, *map(number, values), outcome, why)
    console.print(table)
    detailed = [row for row in rows if row.examples]
    for row in detailed[:MAX_DETAILS]:
        head = f"{row.result}: {row.check}, {row.slice}{_policy(row)}"
        say(console, head, _STYLES[row.result])
        for example in row.examples:
            say(console, f"  - {example}")
    hidden = len(rows[MAX_ROWS:]) or len(detailed[MAX_DETAILS:])
    if hidden:
        say(console, f"and {hidden} more: see run.json", "dim")


def _policy(row: Check) -> str:
    return f"   ({row.policy})" if row.policy else ""
