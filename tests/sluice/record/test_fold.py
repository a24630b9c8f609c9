"""The fold of events: a run's status, exit code, nodes and pushes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sluice.errors import ExitCode
from sluice.record.events import (
    Artifact,
    Event,
    Finished,
    GraphCompiled,
    GraphNode,
    NodeFailure,
    NodeFinished,
    NodeRetried,
    NodeStarted,
    Note,
    Push,
    ReportWritten,
    RunEnded,
    RunKilled,
    RunResumed,
    RunStarted,
    RunUnchanged,
    Stopped,
)
from sluice.record.fold import fold
from sluice.record.run_record import RunRecord

pytestmark = pytest.mark.unit

NODES = ("DataGate", "Trainer", "ModelVerdict", "Pusher")
GRAPH = GraphCompiled(nodes=tuple(GraphNode(name, name, ()) for name in NODES))
END = RunEnded(exit_code=None, reason="", logs={})
RESUMED = RunResumed(command="c", workers=1, resume_command="sluice resume p")
Folded = Callable[..., RunRecord]


@pytest.fixture
def folded(run_started: RunStarted) -> Folded:
    """Folds events after those that begin a run; they happen a second apart."""

    def folded(*events: Event) -> RunRecord:
        everything: list[Event] = [run_started, GRAPH, *events]
        dated: list[Event] = [
            replace(event, at=f"2026-01-01T00:00:{second:02}.500000+00:00")
            for second, event in enumerate(everything)
        ]
        return fold(dated)

    return folded


def _ran(node: str, **facts: Any) -> list[Event]:
    facts = {"state": "ran", "duration_s": 1.0, **facts}
    return [NodeStarted(node=node, attempt=1), NodeFinished(node=node, **facts)]


def _gate(passed: bool) -> dict[str, Any]:
    return {"gate": "model", "passed": passed, "override": None, "rows": []}


def test_a_push(folded: Folded) -> None:
    record = folded(
        *_ran("DataGate"),
        *_ran("Trainer"),
        *_ran("ModelVerdict", gates=(_gate(True),)),
        *_ran("Pusher", push=Push("pushed", 3, "/s/3")),
        Finished(),
        END,
    )
    assert (record.status, record.exit_code) == ("succeeded", 0)
    push = record.pushes[0]
    assert (push.state, push.version, push.uri) == ("pushed", 3, "/s/3")
    assert record.started_at == "2026-01-01T00:00:00+00:00"
    assert record.ended_at == "2026-01-01T00:00:11+00:00"


def test_everything_cached_is_up_to_date(folded: Folded) -> None:
    cached = [event for node in NODES for event in _ran(node, state="cached")]
    record = folded(*cached, Finished(), END)
    assert (record.status, record.exit_code) == ("up_to_date", 0)


def test_a_refused_model_is_blocked_with_exit_4(folded: Folded) -> None:
    record = folded(
        *_ran("ModelVerdict", gates=(_gate(False),)),
        *_ran("Pusher", state="blocked", push=Push("blocked")),
        Finished(),
        END,
    )
    assert (record.status, record.exit_code) == ("blocked", 4)
    assert (record.pushes[0].state, record.pushes[0].version) == ("blocked", None)
    assert record.gates == [_gate(False)]


def test_the_data_gate_blocks_with_exit_3(folded: Folded) -> None:
    error = NodeFailure("the data gate has not passed", 3, gate=True)
    record = folded(
        *_ran("DataGate", state="failed", error=error, log="/logs/DataGate.log"),
        NodeFinished(node="Pusher", state="blocked", push=Push("blocked")),
        Finished(),
        END,
    )
    assert (record.status, record.exit_code) == ("blocked", 3)
    assert record.error is not None
    assert (record.error.node, record.error.log) == ("DataGate", "/logs/DataGate.log")
    assert record.resume_command is None


def test_a_resume_keeps_the_tags(run_started: RunStarted) -> None:
    begun = replace(run_started, tags={"night": ""})
    resumed = replace(RESUMED, at=begun.at)
    assert fold([begun, GRAPH, resumed]).tags == {"night": ""}


def test_the_first_failure_counts(folded: Folded) -> None:
    record = folded(
        *_ran("Trainer", state="failed", error=NodeFailure("boom", 7)),
        *_ran("Pusher", state="failed", error=NodeFailure("x", 5), push=Push("failed")),
        Finished(),
        END,
    )
    assert (record.status, record.exit_code) == ("failed", 7)
    assert record.error is not None and record.error.message == "boom"
    assert record.pushes[0].state == "failed"
    assert record.resume_command == "sluice resume p"


def test_a_node_that_dies_with_its_process_has_failed(folded: Folded) -> None:
    logs = {"Trainer": "/logs/Trainer.log", "start": "/logs/start.log"}
    record = folded(
        NodeStarted(node="Trainer", attempt=1),
        RunEnded(exit_code=None, reason="was killed by signal 9", logs=logs),
    )
    assert (record.status, record.exit_code) == ("failed", 7)
    assert record.error is not None
    assert record.error.message == "Trainer was killed by signal 9"
    assert record.error.log == "/logs/Trainer.log"
    assert record.node("Trainer").state == "failed"


@pytest.mark.parametrize("started", [[], ["DataGate", "Trainer"]])
def test_a_process_that_dies_between_nodes_is_a_failure(
    folded: Folded, started: list[str]
) -> None:
    ran = [event for node in started for event in _ran(node)]
    record = folded(*ran, replace(END, reason="was killed by SIGSEGV"))
    assert (record.status, record.exit_code) == ("failed", 7)
    assert record.error is not None
    assert record.error.message == "the run was killed by SIGSEGV"
    assert record.resume_command == "sluice resume p"


def test_an_interrupt_is_not_a_failure(folded: Folded) -> None:
    interrupt = RunEnded(
        exit_code=ExitCode.INTERRUPTED, reason="interrupted by SIGINT", logs={}
    )
    record = folded(NodeStarted(node="Trainer", attempt=1), interrupt)
    assert (record.status, record.exit_code) == ("interrupted", 130)
    assert record.node("Trainer").state == "interrupted"
    # A signal after the last node has nothing to interrupt.
    assert folded(*_ran("Trainer"), Finished(), interrupt).status == "succeeded"


def test_a_run_that_never_starts_has_an_error(folded: Folded) -> None:
    record = folded(Stopped(message="no TFX", exit_code=2, log="/l"), END)
    assert (record.status, record.exit_code) == ("failed", 2)
    assert record.error is not None and record.error.log == "/l"
    assert record.resume_command is None


def test_a_killed_run_is_interrupted_without_an_exit_code(folded: Folded) -> None:
    record = folded(
        *_ran("DataGate"),
        NodeStarted(node="Trainer", attempt=1),
        RunKilled(reason="was killed"),
    )
    assert (record.status, record.exit_code) == ("interrupted", None)
    assert record.ended_at is None
    assert record.error is not None and record.error.message == "the run was killed"
    states = [node.state for node in record.nodes]
    assert states == ["ran", "interrupted", "not_reached", "not_reached"]


def test_a_resumed_run_resets_its_status_and_keeps_attempts(folded: Folded) -> None:
    failed = _ran("Trainer", state="failed", error=NodeFailure("boom", 7))
    record = folded(*failed, Finished(), END, RESUMED)
    assert (record.status, record.exit_code, record.error) == ("running", None, None)
    assert record.resume_command is None and record.ended_at is None
    record = folded(*failed, Finished(), END, RESUMED, GRAPH)
    trainer = record.node("Trainer")
    assert (trainer.state, trainer.attempts, trainer.duration_s) == (
        "not_reached",
        1,
        1.0,
    )
    record = folded(
        *failed, END, RESUMED, GRAPH, *_ran("Trainer"), Finished(), END, RESUMED
    )
    assert record.node("Trainer").attempts == 2
    assert len(record.resumed_at) == 2


def test_a_pause_is_from_the_end_to_the_resume(folded: Folded) -> None:
    assert folded(Finished(), END).paused_s == 0.0
    drawn = ReportWritten(uri="/report.html")
    assert folded(Note(text="one"), END, drawn, drawn, RESUMED).paused_s == 3.0
    # When a run was killed is known from its last event.
    killed = RunKilled(reason="was killed")
    assert folded(Note(text="one"), killed, RESUMED).paused_s == 2.0
    assert folded(END, RESUMED, Note(text="one"), END, RESUMED).paused_s == 2.0


def test_times_of_a_node_are_those_of_its_last_attempt(folded: Folded) -> None:
    """An attempt whose end is unknown has no duration."""
    failed = _ran("Trainer", state="failed", error=NodeFailure("boom", 7))
    first = [*_ran("DataGate", peak_memory_bytes=5), *failed, END, RESUMED, GRAPH]
    # A resume repeats the results of finished nodes, with the time of the node alone.
    repeated = NodeFinished(node="DataGate", state="cached", duration_s=0.4)
    started = NodeStarted(node="Trainer", attempt=2)
    record = folded(*first, repeated, started)
    assert record.resumed_at == ["2026-01-01T00:00:07+00:00"]
    gate, trainer = record.node("DataGate"), record.node("Trainer")
    assert (gate.started_at, gate.duration_s) == ("2026-01-01T00:00:02.500000+00:00", 1)
    assert (gate.attempts, gate.peak_memory_bytes) == (1, 5)
    assert trainer.started_at == "2026-01-01T00:00:10.500000+00:00"
    assert (trainer.duration_s, trainer.attempts) == (None, 2)

    found_later = NodeFinished(node="Trainer", state="ran")
    killed = [RunKilled(reason="was killed"), found_later]
    assert folded(*first, started, *killed).node("Trainer").duration_s is None
    ended = NodeFinished(node="Trainer", state="ran", duration_s=2.0)
    assert folded(*first, started, ended).node("Trainer").duration_s == 2.0
    skipped = NodeFinished(node="Pusher", state="skipped")
    pusher = folded(*first, skipped).node("Pusher")
    assert (pusher.started_at, pusher.duration_s, pusher.attempts) == (None, 0.0, 0)


@pytest.mark.parametrize("numbers", [(1, 2, 3), (1, 1, 1), (1, 3)])
def test_attempts_count_on_after_a_resume(
    folded: Folded, numbers: tuple[int, ...]
) -> None:
    """Also in older journals, which begin again at 1, and where a line is lost."""
    starts = [NodeStarted(node="Trainer", attempt=number) for number in numbers]
    assert folded(*starts).node("Trainer").attempts == 3


def test_a_retried_node_is_running_and_noted(folded: Folded) -> None:
    retried = NodeRetried(node="Trainer", attempt=1, wait_s=2.0, reason="no network")
    record = folded(NodeStarted(node="Trainer", attempt=1), retried, retried)
    assert record.node("Trainer").state == "running"
    assert record.notes == [
        "Trainer: attempt 1 failed, tried again after 2 s: no network"
    ]


def test_an_artifact_belongs_to_the_node_that_made_it(folded: Folded) -> None:
    made, seen = Artifact(1, "Model", "/m", {}), Artifact(2, "Examples", "/e", {})
    record = folded(
        *_ran("Trainer", inputs={"examples": [seen]}, outputs={"model": [made]}),
        *_ran("DataGate", outputs={"model": [made]}),
    )
    assert record.artifacts["/m"].producer == "Trainer"
    assert record.artifacts["/e"].producer is None
    assert record.node("Trainer").inputs == {"examples": ["/e"]}


def test_an_unchanged_run_copies_the_last_one(folded: Folded) -> None:
    last = folded(
        *_ran("Trainer", outputs={"model": [Artifact(1, "Model", "/m", {})]}),
        *_ran("Pusher", push=Push("pushed", 3, "/s/3")),
        NodeFinished(node="DataGate", state="skipped", reason="not asked"),
        Finished(),
        END,
    )
    record = folded(
        RunUnchanged(
            since=last.run_id,
            nodes=tuple(last.nodes),
            gates=(_gate(True),),
            pushes=tuple(last.pushes),
            artifacts=last.artifacts,
            documents=(),
        )
    )
    assert (record.status, record.exit_code) == ("up_to_date", 0)
    assert (record.pushes[0].state, record.pushes[0].version) == ("already_served", 3)
    assert record.artifacts == last.artifacts
    trainer, skipped = record.node("Trainer"), record.node("DataGate")
    assert (trainer.state, trainer.duration_s, trainer.attempts) == ("cached", 0.0, 0)
    assert trainer.reason == f"nothing has changed since run {last.run_id}"
    assert (skipped.state, skipped.reason) == ("skipped", "not asked")
    # What the event holds is the other run's, and stays as it is.
    assert last.node("Trainer").state == "ran"


def test_a_node_without_its_graph_event_is_kept(run_started: RunStarted) -> None:
    record = fold([run_started, *_ran("Trainer")])
    assert [(node.id, node.state) for node in record.nodes] == [("Trainer", "ran")]


def test_notes_are_unique_and_reports_are_linked(folded: Folded) -> None:
    note = Note(text="a lock was taken over")
    record = folded(note, note, ReportWritten(uri="/report.html"))
    assert record.notes == ["a lock was taken over"]
    assert record.report_uri == "/report.html"


def test_events_without_run_started_are_an_error() -> None:
    with pytest.raises(ValueError, match="run_started is missing"):
        fold([GRAPH, *_ran("Trainer")])
