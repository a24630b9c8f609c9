"""Live view of a run, in a terminal and in a pipe."""

from __future__ import annotations

import io
import itertools
import time

import pytest
from rich.console import Console

from runners.cli.render_run import describe_progress
from runners.cli.run_view import RunView
from sluice.graph import GraphNode
from sluice.record.events import GraphCompiled, NodeFinished, NodeStarted, Stopping
from sluice.record.run_record import NodeRecord, RunRecord

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
STEP = {
    "event": "step",
    "epoch": 2,
    "epochs": 5,
    "step": 120,
    "steps": 400,
    "examples_per_second": 98.6,
    "eta_s": 65.0,
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
        "epoch 2/5  val_loss 0.2500  5,321 examples/s  at most 1m30s left"
    )
    last = {**EPOCH, "epoch": 5, "eta_s": 0.0}
    assert describe_progress(last) == "epoch 5/5  val_loss 0.2500  5,321 examples/s"


def test_a_step_has_its_rate_and_an_eta() -> None:
    assert describe_progress(STEP) == (
        "epoch 2/5  step 120/400  99 examples/s  at most 1m05s left"
    )


@pytest.mark.parametrize(
    ("eta_s", "left"), [(59.7, "59.7s"), (60.0, "1m00s"), (119.7, "2m00s")]
)
def test_times_roll_over_into_minutes(eta_s: float, left: str) -> None:
    line = describe_progress({**EPOCH, "eta_s": eta_s})
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


def test_a_pipe_gets_a_line_of_a_long_epoch_every_half_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view, _, text = _view(terminal=False)
    seconds = itertools.count(1000)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))
    view.on_progress("Trainer", {**EPOCH, "epoch": 1})
    for step in range(1, 101):
        view.on_progress("Trainer", {**STEP, "step": step})
    lines = [line.split()[1:5] for line in text.getvalue().splitlines()]
    assert lines[0][:2] == ["epoch", "1/5"]
    assert [line[3] for line in lines[1:]] == ["30/400", "60/400", "90/400"]


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        (("Trainer",), "stopping: Trainer may finish; repeat to kill it"),
        (("A", "B"), "stopping: A and B may finish; repeat to kill them"),
    ],
)
def test_the_nodes_that_are_stopped(nodes: tuple[str, ...], line: str) -> None:
    view, record, text = _view(terminal=False)
    view.on_event(Stopping(signal="SIGINT", nodes=nodes), record)
    assert text.getvalue().splitlines() == [line]


def test_a_pipe_gets_every_note() -> None:
    view, _, text = _view(terminal=False)
    for line in ("one_device: 1 replica on the CPU", "restored"):
        view.on_progress("Trainer", {"event": "some", "line": line})
    assert len(text.getvalue().splitlines()) == 2


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
