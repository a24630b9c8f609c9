"""Events of a run in a service: complete, in order, and never twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runners.cloud.service import FailedAttempt, ServiceJob, ServiceTask, TaskState
from runners.cloud.service_run import graph_of, new_events
from runners.cloud.spec import Spec, read_spec
from sluice.record.events import Artifact, Event, RunResumed, RunStarted
from sluice.record.journal import Journal
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord
from sluice.record.verdict import Check, Verdict
from tests.runners.cloud.small_job import EXECUTORS, small_job

pytestmark = pytest.mark.unit


def _at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}.000000+00:00"


@pytest.fixture
def spec() -> Spec:
    return read_spec(small_job())


class Run:
    """A run in a folder, which is refreshed from answers of the service."""

    def __init__(self, run_dir: Path, spec: Spec) -> None:
        self.run_dir, self.spec = run_dir, spec
        self.recorder = Recorder(run_dir)
        self.recorder.apply(
            RunStarted(
                run_id=run_dir.name,
                pipeline="digits",
                command="sluice submit digits",
                destination="gs://bucket/serving",
                config={},
                workers=1,
                use_cache=True,
                forced=(),
                from_nodes=(),
                to_nodes=(),
                accept_data=None,
                resume_command="sluice resume digits",
            )
        )
        self.recorder.apply(graph_of(spec))

    def refresh(self, job: ServiceJob) -> list[Event]:
        """Appends what is new and returns it."""
        journal = Journal(self.run_dir).events()
        events = list(new_events(self.run_dir, self.spec, journal, job))
        for event in events:
            self.recorder.apply(event)
        return events

    @property
    def record(self) -> RunRecord:
        return self.recorder.record

    @property
    def states(self) -> dict[str, str]:
        return {node.id: node.state for node in self.record.nodes}


@pytest.fixture
def run(tmp_path: Path, spec: Spec) -> Run:
    return Run(tmp_path, spec)


def _task(name: str, state: TaskState, start: int = 0, **values: Any) -> ServiceTask:
    begun = state not in ("pending", "cached", "skipped")
    ended = state not in ("pending", "running")
    return ServiceTask(
        name,
        state,
        started_at=_at(start) if begun else None,
        ended_at=_at(start + 5) if ended else None,
        **values,
    )


def _verdict(folder: Path, *, passed: bool) -> Mapping[str, tuple[Artifact, ...]]:
    row = Check("drift", "all", "<= 0.1", None, 0.2, passed, "why")
    folder.mkdir()
    text = json.dumps(Verdict("data", (row,), None).to_dict())
    (folder / "verdict.json").write_text(text)
    return {"verdict": (Artifact(1, "components.DataVerdict", str(folder), {}),)}


def test_the_graph_has_kinds_and_gates_but_no_exit_handler(spec: Spec) -> None:
    nodes = graph_of(spec).nodes
    assert [node.id for node in nodes] == list(EXECUTORS)[:-1]
    assert [node.id for node in nodes if node.gate] == ["DataGate"]
    assert [node.id for node in nodes if node.judges_data] == ["DataVerdict"]
    assert nodes[3].upstream == ("Trainer",)


def test_a_run_that_succeeds_is_told_piece_by_piece(run: Run, tmp_path: Path) -> None:
    job = ServiceJob("job", "pending", created_at=_at(0))
    assert run.refresh(job) == []
    verdict = _task(
        "DataVerdict", "succeeded", outputs=_verdict(tmp_path / "v", passed=True)
    )
    job = replace(
        job, state="running", tasks=(_task("DataGate", "running", 6), verdict)
    )
    assert [type(event).__name__ for event in run.refresh(job)] == [
        "NodeStarted",
        "NodeFinished",
        "NodeStarted",
    ]
    assert run.refresh(job) == []
    assert run.states["DataVerdict"] == "ran" and run.states["DataGate"] == "running"
    assert run.record.node("DataVerdict").duration_s == 5
    assert run.record.node("DataGate").started_at == _at(6)
    assert [gate["gate"] for gate in run.record.gates] == ["data"]
    properties = {
        "state": "pushed",
        "pushed_version": "7",
        "pushed_destination": "gs://bucket/serving/7",
    }
    pushed = (Artifact(2, "PushedModel", "gs://bucket/p", properties),)
    job = replace(
        job,
        state="succeeded",
        ended_at=_at(40),
        tasks=(
            verdict,
            _task("DataGate", "succeeded", 6),
            _task("Trainer", "cached", 12),
            _task("Pusher", "succeeded", 12, outputs={"pushed_model": pushed}),
            _task("Report", "succeeded", 20),
        ),
    )
    assert run.refresh(job) and run.refresh(job) == []
    assert run.record.status == "succeeded" and run.record.exit_code == 0
    assert run.record.ended_at == "2026-01-01T00:00:40+00:00"
    assert run.states["Trainer"] == "cached"
    assert run.record.pushes[0].version == 7


def test_a_gate_blocks_as_on_a_local_run(run: Run, tmp_path: Path) -> None:
    job = ServiceJob(
        "job",
        "failed",
        created_at=_at(0),
        ended_at=_at(30),
        error="The DAG failed because some tasks failed.",
        tasks=(
            _task(
                "DataVerdict",
                "succeeded",
                outputs=_verdict(tmp_path / "v", passed=False),
            ),
            _task("DataGate", "failed", 6, error="exited with 1"),
            _task("Trainer", "skipped", 12),
        ),
    )
    run.refresh(job)
    assert (run.record.status, run.record.exit_code) == ("blocked", 3)
    assert run.states["DataGate"] == "failed"
    assert run.states["Trainer"] == run.states["Pusher"] == "blocked"
    assert run.record.node("Pusher").reason == "stopped by DataGate"
    assert run.record.error and run.record.error.message == (
        "DataGate has stopped the run: the data gate has not passed"
    )


def test_a_gate_whose_container_fails_is_a_failure(run: Run, tmp_path: Path) -> None:
    passed = _verdict(tmp_path / "v", passed=True)
    job = ServiceJob(
        "job",
        "failed",
        ended_at=_at(30),
        tasks=(
            _task("DataVerdict", "succeeded", outputs=passed),
            _task("DataGate", "failed", 6, error="the image cannot be pulled"),
        ),
    )
    run.refresh(job)
    assert (run.record.status, run.record.exit_code) == ("failed", 7)
    assert run.states["Trainer"] == "not_reached"
    assert "the image cannot be pulled" in run.record.error.message  # type: ignore[union-attr]


def test_attempts_that_the_service_repeats(run: Run) -> None:
    first = FailedAttempt(_at(3), "the machine was preempted")
    task = _task("DataVerdict", "running", failed_attempts=(first,))
    job = ServiceJob("job", "running", tasks=(task,))
    run.refresh(job)
    assert run.refresh(job) == []
    second = FailedAttempt(_at(4), "preempted again")
    task = _task("DataVerdict", "succeeded", failed_attempts=(first, second))
    job = replace(job, tasks=(task,))
    assert len(run.refresh(job)) == 3
    node = run.record.node("DataVerdict")
    assert (node.attempts, node.state) == (3, "ran")
    assert len(run.record.notes) == 2 and "preempted again" in run.record.notes[1]


def test_a_cancelled_job_is_interrupted_and_can_be_resumed(run: Run) -> None:
    job = ServiceJob(
        "job",
        "cancelled",
        ended_at=_at(9),
        tasks=(_task("DataVerdict", "succeeded"), _task("DataGate", "cancelled", 6)),
    )
    run.refresh(job)
    assert (run.record.status, run.record.exit_code) == ("interrupted", 130)
    assert run.states["DataGate"] == "interrupted"
    assert run.record.resume_command == "sluice resume digits"
    run.recorder.apply(
        RunResumed(command="sluice resume", workers=1, resume_command=None)
    )
    run.recorder.apply(graph_of(run.spec))
    again = ServiceJob(
        "job-2",
        "running",
        tasks=(_task("DataVerdict", "cached"), _task("DataGate", "running", 20)),
    )
    run.refresh(again)
    assert run.states["DataVerdict"] == "cached"
    node = run.record.node("DataGate")
    assert (node.state, node.attempts) == ("running", 2)


def test_a_job_that_fails_outside_of_its_tasks(run: Run) -> None:
    job = ServiceJob("job", "failed", ended_at=_at(9), error="no such service account")
    run.refresh(job)
    assert (run.record.status, run.record.exit_code) == ("failed", 8)
    assert run.record.error and "no such service account" in run.record.error.message


def test_a_failed_exit_handler_is_a_note(run: Run) -> None:
    tasks = tuple(_task(name, "succeeded") for name in list(EXECUTORS)[:-1])
    tasks += (_task("Report", "failed", 20, error="exited with 1"),)
    run.refresh(ServiceJob("job", "failed", ended_at=_at(30), tasks=tasks))
    assert run.record.status == "succeeded"
    assert run.record.notes == ["Report, which writes the report, failed"]
