"""Live view of a run, in a terminal and in a pipe."""

from __future__ import annotations

import io

import pytest

from runners.cli.rich_console import PlainConsole
from runners.cli.run_view import RunView
from sluice.record.parts import NodeRecord
from sluice.record.run_record import RunRecord

pytestmark = pytest.mark.unit

EPOCH = {
    "event": "epoch",
    "epoch": 2,
    "epochs": 5,
    "duration_s": 30.0,
    "examples_per_second": 5321.4,
    "eta_s": 90.0,
    "metrics": {"loss": 1.0, "val_loss": 0.25},
}


def _view(*, terminal: bool) -> tuple[RunView, RunRecord, io.StringIO]:
    text = io.StringIO()
    console = PlainConsole(
        file=text, force_terminal=terminal, width=100, color_system=None
    )
    record = RunRecord("r", "p")
    record.nodes = [NodeRecord("Trainer", "Trainer"), NodeRecord("Pusher", "Pusher")]
    view = RunView(console)
    view.on_begin(record)
    text.seek(0)
    text.truncate()
    return view, record, text


def test_a_pipe_gets_a_line_per_node_and_few_epochs():
    view, record, text = _view(terminal=False)
    with view:
        record.nodes[0].state = "running"
        view.on_node(record, record.nodes[0])
        for epoch in range(1, 5):  # It stops early.
            view.on_progress("Trainer", {**EPOCH, "epoch": epoch})
        record.nodes[0].state, record.nodes[0].duration_s = "ran", 2.0
        view.on_node(record, record.nodes[0])
        record.nodes[1].state, record.nodes[1].duration_s = "ran", 1.0
        view.on_node(record, record.nodes[1])
    lines = text.getvalue().splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["Trainer", "epoch", "1/5"],
        ["Trainer", "done", "2.0"],
        ["Pusher", "done", "1.0"],
    ]


def test_a_terminal_gets_one_live_row_per_node():
    view, record, text = _view(terminal=True)
    with view:
        record.nodes[0].state = "running"
        view.on_node(record, record.nodes[0])
        view.on_progress("Trainer", EPOCH)
        view.on_tick()
    shown = text.getvalue()
    assert "running" in shown
    assert "epoch 2/5" in shown
    assert "Pusher" in shown
