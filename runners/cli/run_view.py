"""Shows a run while it goes on: one live row per node, or plain lines in a pipe."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from runners.cli.console import plain
from runners.cli.render_run import describe_progress, node_table, seconds
from runners.local.run_result import NOT_ASKED_FOR
from sluice.record.run_record import RunRecord
from sluice.record.states import NODE_STATES

_PLAIN_PROGRESS_S = 10.0


class RunView:
    """Draws a run record; a context manager around the run."""

    def __init__(self, console: Console, record: RunRecord) -> None:
        self._console = console
        self._record = record
        self._notes: dict[str, str] = {}
        self._last_plain_note = 0.0
        self._live = (
            Live(console=console, get_renderable=self._table, auto_refresh=False)
            if console.is_terminal
            else None
        )

    def __enter__(self) -> RunView:
        if self._live:
            self._live.__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        if self._live:
            self._live.__exit__(*exc_info)

    def on_event(self, event: dict[str, Any]) -> None:
        """Shows an event that the record has already taken in."""
        if event["event"] == "node_finished" and self._live is None:
            node = self._record.node(event["node"])
            if node.reason == NOT_ASKED_FOR:
                return
            note = node.reason or ""
            took = seconds(node.duration_s)
            self._line(
                f"{node.id:<20} {NODE_STATES[node.state].label:<12} {took:>7}  {note}"
            )
        elif event["event"] == "node_retried":
            self._line(
                f"{event['node']:<20} failed, again in {event['wait_s']:g} s: "
                f"{event['reason']}"
            )
        elif event["event"] == "stopping" and event["nodes"]:
            nodes = " and ".join(event["nodes"])
            self._line(f"stopping: {nodes} may finish what is begun; again to kill")
        self.tick()

    def on_progress(self, node: str, facts: dict[str, Any]) -> None:
        """Shows what a node says about itself, such as the epoch it is in."""
        note = describe_progress(facts)
        if note is None:
            return
        self._notes[node] = note
        now = time.monotonic()
        last = facts.get("epoch") is not None and facts["epoch"] == facts["epochs"]
        due = now - self._last_plain_note >= _PLAIN_PROGRESS_S
        note_of_its_own = facts.get("event") != "epoch"
        if self._live is None and (last or due or note_of_its_own):
            self._last_plain_note = now
            self._line(f"{node:<20} {note}")

    def tick(self) -> None:
        """Draws the clock of the running node anew."""
        if self._live:
            self._live.refresh()

    def _line(self, text: str) -> None:
        self._console.print(plain(text.rstrip()), soft_wrap=True)

    def _table(self) -> Table:
        table = node_table(self._record.nodes, notes=self._notes, is_live=True)
        if not self._record.nodes:
            table.add_row(plain("starting: importing TFX", "dim"))
        return table
