"""Live view of a run, in a terminal and in a pipe."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from runners.cli.render_run import describe_progress
from runners.cli.run_view import RunView
from sluice.graph import GraphNode
from sluice.record.events import GraphCompiled, NodeFinished, NodeStarted
from sluice.record.run_record import NodeRecord, RunRecord

pytestmark = pytest.mark.unit

EPOCH = {
    "event": "epoch",
    "epoch": 2,
    "epochs": 5,
    "duration_s": 30.0,
    "metrics": {"loss": 1.0, "val_loss": 0.25},
}


def _view(*, terminal: bool) -> tuple[RunView, RunRecord, io.StringIO]:
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=100, color_system=None)
    record = RunRecord("r", "p", "t", "c")
    record.nodes = [NodeRecord("Trainer", "Trainer"), NodeRecord("Pusher", "Pusher")]
    view = RunView(console)
    view.on_event(GraphCompiled(nodes=()), record)
    return view, record, text


def test_an_epoch_has_its_metrics_and_an_eta() -> None:
    assert describe_progress(EPOCH) == (
        "epoch 2/5  val_loss 0.2500  at most 1m30s left"
    )
    last = {**EPOCH, "epoch": 5}
    assert describe_progress(last) == "epoch 5/5  val_loss 0.2500"


@pytest.mark.parametrize(
    ("duration_s", "left"), [(19.9, "59.7s"), (20.0, "1m00s"), (39.9, "2m00s")]
)
def test_times_roll_over_into_minutes(duration_s: float, left: str) -> None:
    line = describe_progress({**EPOCH, "duration_s": duration_s})
    assert line and line.endswith(f"at most {left} left")


def test_unknown_progress_is_not_shown() -> None:
    assert describe_progress({"event": "something new"}) is None


def test_a_pipe_gets_a_line_per_node_and_few_epochs() -> None:
    view, record, text = _view(terminal=False)
    with view:
        record.nodes[0].state = "running"
        view.on_event(NodeStarted(node="Trainer", attempt=1), record)
        for epoch in range(1, 6):
            view.on_progress("Trainer", {**EPOCH, "epoch": epoch})
        record.nodes[0].state, record.nodes[0].duration_s = "ran", 2.0
        view.on_event(NodeFinished(node="Trainer", state="ran"), record)
    lines = text.getvalue().splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["Trainer", "epoch", "1/5"],
        ["Trainer", "epoch", "5/5"],
        ["Trainer", "done", "2.0s"],
    ]


def test_a_pipe_gets_no_line_for_skipped_nodes() -> None:
    view, record, text = _view(terminal=False)
    pusher = GraphNode("Pusher", "Pusher", (), action="skip")
    view.on_event(GraphCompiled(nodes=(pusher,)), record)
    record.nodes[1].state = "skipped"
    view.on_event(NodeFinished(node="Pusher", state="skipped"), record)
    assert text.getvalue() == ""


def test_a_terminal_gets_one_live_row_per_node() -> None:
    view, record, text = _view(terminal=True)
    with view:
        record.nodes[0].state = "running"
        view.on_event(NodeStarted(node="Trainer", attempt=1), record)
        view.on_progress("Trainer", EPOCH)
        view.on_tick()
    shown = text.getvalue()
    assert "running" in shown
    assert "epoch 2/5" in shown
    assert "Pusher" in shown
