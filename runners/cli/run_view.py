"""Live view of a run (a row per node, or plain lines in a pipe) and its result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from reports.formats import progress, seconds
from runners.cli.options import Result, wants_json
from runners.cli.render_run import make_node_table, print_outcome
from runners.cli.rich_console import make_console, plain, say
from runners.engine import Observer
from sluice.record.parts import NodeRecord
from sluice.record.run_record import RunRecord
from sluice.record.states import NODE_STATES

# Minimum time between two lines of a training's progress in a pipe.
_PLAIN_PROGRESS_S = 10.0


class RunView(Observer):
    """Draws a run in progress; a context manager around the operation."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._record: RunRecord | None = None
        self._notes: dict[str, str] = {}
        self._last_plain_note = -math.inf
        # By node, the newest line of progress that a pipe has not been given.
        self._held_back: dict[str, str] = {}
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

    def on_begin(self, record: RunRecord) -> None:
        if self._record is None:
            resuming = "resuming " if record.resumed_at else ""
            self._line(f"{record.pipeline}  {resuming}run {record.run_id}", "bold")
        self._record = record
        self._refresh()

    def on_node(self, record: RunRecord, node: NodeRecord) -> None:
        if self._live is None and node.state != "running":
            if last := self._held_back.pop(node.id, None):
                self._line(last)
            label, took = NODE_STATES[node.state].label, seconds(node.duration_s, "")
            self._line(f"{node.id:<20} {label:<12} {took:>10}  {node.reason or ''}")
        self._refresh()

    def on_progress(self, node: str, facts: dict[str, Any]) -> None:
        note = "  ".join(progress(facts))
        if not note:
            return
        self._notes[node] = note
        self._held_back[node] = f"{node:<20} {note}"
        now = time.monotonic()
        due = now - self._last_plain_note >= _PLAIN_PROGRESS_S
        if self._live is None and (due or "line" in facts):
            self._last_plain_note = now
            self._line(self._held_back.pop(node))

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


def run_with_view(operate: Callable[..., RunRecord]) -> Result:
    """Runs an operation with a live view, on stderr where stdout has the record.

    ``operate`` runs the pipeline, and takes the view as its ``observer``.
    """
    console = make_console(to_stderr=wants_json())
    with RunView(console) as view:
        record = operate(observer=view)
    print_outcome(console, record)
    return Result(record.to_dict(), exit_code=record.exit_code or 0)
