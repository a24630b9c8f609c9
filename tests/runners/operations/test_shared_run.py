"""Shared runs: concurrent and repeated calls, kills, cancelling, a clock set back.

The nodes are stubs in the process that calls ``run_node``; everything around them, from
the lock to the scheduler, is real.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ml_metadata.proto import metadata_store_pb2

from runners.local.engine import LocalEngine
from runners.local.graph_file import GraphFile, PlannedNode
from runners.operations import run_node as operations
from runners.operations.cancel import CancelRequest, cancel
from runners.operations.complete_killed_runs import complete_killed_runs
from runners.operations.resume import ResumeRequest, resume
from runners.operations.run_node import end_run, run_node
from runners.operations.shared_run import SharedRun, node_lock
from sluice.errors import LockedError, UsageError
from sluice.record.events import (
    GraphCompiled,
    GraphNode,
    RunEnded,
    RunResumed,
)
from sluice.record.fold import fold
from sluice.record.journal import Journal
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace
from tests.runners.operations.stub_pool import Stubs

pytestmark = pytest.mark.unit

DIAMOND = {"Read": (), "Left": ("Read",), "Right": ("Read",), "Join": ("Left", "Right")}
DEADLINE_S = 60.0


@pytest.fixture
def stubs(tmp_path: Path) -> Stubs:
    return Stubs(tmp_path)


@pytest.fixture
def engine(stubs: Stubs) -> LocalEngine:
    return LocalEngine(stubs)  # type: ignore[arg-type]


@pytest.fixture
def shared(written: Any) -> SharedRun:
    """A shared run of a diamond-shaped graph."""
    return _share(written, DIAMOND)


def _share(written: Any, graph: dict[str, tuple[str, ...]], **facts: Any) -> SharedRun:
    workspace, run_id = written.workspace, written.FIRST
    recorder = written.begin(run_id)
    nodes = tuple(GraphNode(name, name, before) for name, before in graph.items())
    recorder.apply(GraphCompiled(nodes=nodes))
    connection = metadata_store_pb2.ConnectionConfig()
    connection.sqlite.filename_uri = str(workspace.metadata_db)
    planned = tuple(
        PlannedNode(
            name,
            name,
            before,
            contexts=(("pipeline_run", run_id), ("node", name)),
            gate=name == "Gate",
            resolver=False,
            pushes=name == "Pusher",
        )
        for name, before in graph.items()
    )
    text = connection.SerializeToString().hex()
    GraphFile("digits", planned, text).save(recorder.run_dir)
    with workspace.exclusive("test") as lock:
        lock.share(run_id, "test", 3600.0)
    return SharedRun(workspace.root, run_id, tuple(graph))


def _fork(function: Callable[..., object], *arguments: Any) -> Any:
    context = multiprocessing.get_context("fork")
    process = context.Process(target=function, args=arguments)
    process.start()
    return process


def _wait_for(condition: Callable[[], object]) -> None:
    ends = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def _check_whole(run: SharedRun) -> RunRecord:
    """Returns the record, which is the fold of its journal; nobody is kept out."""
    record = RunRecord.load(run.run_dir)
    assert record == fold(Journal(run.run_dir).events())
    workspace = Workspace(run.workspace)
    assert not workspace.is_running()
    assert complete_killed_runs(workspace) == []
    with workspace.exclusive("next"):
        pass
    return record


def test_two_branches_run_in_two_processes(
    shared: SharedRun, engine: LocalEngine, stubs: Stubs
) -> None:
    run_node(shared, "Read", engine=engine)
    held = [stubs.hold(name) for name in ("Left", "Right")]
    branches = [
        _fork(lambda name: run_node(shared, name, engine=engine), name)
        for name in ("Left", "Right")
    ]
    _wait_for(lambda: len(stubs.starts()) == 3)
    with pytest.raises(LockedError):
        end_run(shared)
    with pytest.raises(LockedError, match="Left is already running"):
        run_node(shared, "Left", engine=engine)
    with pytest.raises(UsageError, match="cannot run yet: Left, Right"):
        run_node(shared, "Join", engine=engine)
    for path in held:
        path.unlink()
    for branch in branches:
        branch.join(DEADLINE_S)
        assert branch.exitcode == 0
    run_node(shared, "Join", engine=engine)
    for name in shared.nodes:
        assert run_node(shared, name, engine=engine).attempts == 1
    assert end_run(shared).exit_code == 0
    record = _check_whole(shared)
    assert [node.state for node in record.nodes] == ["ran"] * 4
    assert sorted(stubs.starts()) == sorted(shared.nodes)


def test_a_node_that_another_process_has_just_run_is_not_run_again(
    shared: SharedRun,
    engine: LocalEngine,
    stubs: Stubs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def after_another(run: SharedRun, node: str) -> Any:
        monkeypatch.setattr(operations, "node_lock", node_lock)
        run_node(run, node, engine=engine)
        return node_lock(run, node)

    monkeypatch.setattr(operations, "node_lock", after_another)
    assert run_node(shared, "Read", engine=engine).attempts == 1
    assert stubs.starts() == ["Read"]


def test_a_node_whose_process_was_killed_is_run_again(
    shared: SharedRun, engine: LocalEngine, stubs: Stubs
) -> None:
    held = stubs.hold("Read")
    killed = _fork(lambda: run_node(shared, "Read", engine=engine))
    _wait_for(stubs.starts)
    killed.kill()
    killed.join()
    assert RunRecord.load(shared.run_dir).node("Read").state == "running"
    held.unlink()
    again = run_node(shared, "Read", engine=engine)
    assert (again.state, again.attempts) == ("ran", 2)
    for name in shared.nodes:
        run_node(shared, name, engine=engine)
    assert end_run(shared).exit_code == 0
    _check_whole(shared)


def test_a_run_with_a_killed_node_ends_as_failed(
    shared: SharedRun, engine: LocalEngine, stubs: Stubs
) -> None:
    stubs.hold("Read")
    killed = _fork(lambda: run_node(shared, "Read", engine=engine))
    _wait_for(stubs.starts)
    killed.kill()
    killed.join()
    record = end_run(shared)
    assert (record.status, record.exit_code) == ("failed", 7)
    assert record.node("Read").state == "failed"
    assert record.resume_command
    assert _check_whole(shared) == record


def test_a_gate_that_fails_blocks_the_run(
    written: Any, engine: LocalEngine, stubs: Stubs
) -> None:
    run = _share(written, {"Read": (), "Gate": ("Read",), "Train": ("Gate",)})
    error = {"message": "too bad", "exit_code": 3, "gate": True, "log_tail": []}
    stubs.facts["Gate"] = {"state": "failed", "error": error, "reason": "too bad"}
    states = [run_node(run, name, engine=engine).state for name in run.nodes]
    assert states == ["ran", "failed", "blocked"]
    record = end_run(run)
    assert (record.status, record.exit_code) == ("blocked", 3)
    assert _check_whole(run) == record
    assert stubs.starts() == ["Read", "Gate"]


def test_a_blocked_push_is_not_run_again(
    written: Any, engine: LocalEngine, stubs: Stubs
) -> None:
    run = _share(written, {"Train": (), "Pusher": ("Train",), "After": ("Pusher",)})
    pushed = {"id": 1, "type": "PushedModel", "uri": "", "properties": {}}
    pushed["properties"] = {"state": "blocked"}
    stubs.facts["Pusher"] = {"outputs": {"pushed_model": [pushed]}}
    states = [run_node(run, name, engine=engine).state for name in run.nodes]
    assert states == ["ran", "blocked", "ran"]
    assert run_node(run, "Pusher", engine=engine).attempts == 1
    record = end_run(run)
    assert record.error is None
    assert record.pushes[0].state == "blocked"
    assert _check_whole(run) == record


def test_a_run_is_cancelled_while_a_node_runs(
    shared: SharedRun, engine: LocalEngine, stubs: Stubs
) -> None:
    """No node begins any more, and the last one that runs closes the record."""
    stubs.hold("Read")
    running = _fork(lambda: run_node(shared, "Read", engine=engine))
    _wait_for(stubs.starts)
    cancelled = cancel(CancelRequest(name="digits"))
    assert cancelled.pids == (running.pid,)
    with pytest.raises(UsageError, match="is not shared"):
        run_node(shared, "Read", engine=engine)
    running.join(DEADLINE_S)
    record = _check_whole(shared)
    assert (record.status, record.exit_code) == ("interrupted", 130)
    assert record.node("Read").state == "interrupted"
    assert end_run(shared) == record
    assert stubs.starts() == ["Read"]


def test_a_run_is_cancelled_between_two_nodes(
    shared: SharedRun, engine: LocalEngine
) -> None:
    run_node(shared, "Read", engine=engine)
    done = cancel(CancelRequest(name="digits"))
    assert (done.pids, done.ended) == ((), True)
    with pytest.raises(UsageError, match="is not shared"):
        run_node(shared, "Left", engine=engine)
    assert _check_whole(shared).status == "interrupted"


def test_a_run_is_cancelled_after_a_kill(shared: SharedRun) -> None:
    """What the killed process has started still holds the lock of the node."""
    with node_lock(shared, "Read"):
        dead = _fork(lambda: None)
        dead.join()
        (shared.run_dir / "nodes" / "Read.lock").write_text(f'{{"pid": {dead.pid}}}')
        assert cancel(CancelRequest(name="digits")).pids == ()
    _check_whole(shared)


def test_another_run_takes_over_an_abandoned_one(
    shared: SharedRun, engine: LocalEngine, stubs: Stubs
) -> None:
    workspace = Workspace(shared.workspace)
    run_node(shared, "Read", engine=engine)
    os.utime(workspace.lock_file, (time.time() - 7200,) * 2)
    with workspace.exclusive("sluice run digits") as lock:
        complete_killed_runs(workspace, lock)
        with pytest.raises(LockedError):
            run_node(shared, "Left", engine=engine)
    with pytest.raises(UsageError, match="is not shared"):
        run_node(shared, "Left", engine=engine)
    before = _check_whole(shared)
    assert before.status == "interrupted"
    assert end_run(shared) == before
    assert stubs.starts() == ["Read"]


def test_a_resume_is_refused_while_a_node_of_a_shared_run_runs(
    shared: SharedRun, engine: LocalEngine, stubs: Stubs
) -> None:
    held = stubs.hold("Read")
    running = _fork(lambda: run_node(shared, "Read", engine=engine))
    _wait_for(stubs.starts)
    with pytest.raises(LockedError, match=f"shared run {shared.run_id}, since"):
        resume(ResumeRequest(name="digits"), engine=engine)
    held.unlink()
    running.join(DEADLINE_S)
    resume(ResumeRequest(name="digits", workers=1), engine=engine)
    events = Journal(shared.run_dir).events()
    assert len([event for event in events if isinstance(event, RunResumed)]) == 1
    with pytest.raises(UsageError, match="is not shared"):
        run_node(shared, "Left", engine=engine)
    _check_whole(shared)


def test_two_processes_end_a_run(shared: SharedRun, engine: LocalEngine) -> None:
    for name in shared.nodes:
        run_node(shared, name, engine=engine)
    both = [_fork(lambda: end_run(shared)) for _ in range(2)]
    for process in both:
        process.join(DEADLINE_S)
    assert [process.exitcode for process in both] == [0, 0]
    assert _check_whole(shared).status == "succeeded"
    events = Journal(shared.run_dir).events()
    assert len([event for event in events if isinstance(event, RunEnded)]) == 1


def test_end_run_is_called_again_after_a_kill(
    shared: SharedRun, engine: LocalEngine
) -> None:
    def killed() -> None:
        workspace = Workspace(shared.workspace)
        with workspace.exclusive("end", end_shared=shared.run_id):
            os.kill(os.getpid(), signal.SIGKILL)

    for name in shared.nodes:
        run_node(shared, name, engine=engine)
    _fork(killed).join()
    assert end_run(shared).exit_code == 0
    _check_whole(shared)


def test_a_clock_set_back_does_not_abandon_the_run(
    shared: SharedRun, engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_node(shared, "Read", engine=engine)
    lock_file = Workspace(shared.workspace).lock_file
    os.utime(lock_file, (time.time() + 600,) * 2)
    with pytest.raises(LockedError):
        Workspace(shared.workspace).exclusive("sluice run").__enter__()
    for name in shared.nodes:
        run_node(shared, name, engine=engine)
    assert abs(lock_file.stat().st_mtime - time.time()) < 60
    assert end_run(shared).exit_code == 0
    _check_whole(shared)


def test_a_failed_node_is_run_again_and_the_run_succeeds(
    shared: SharedRun, engine: LocalEngine, stubs: Stubs
) -> None:
    error = {"message": "boom", "exit_code": 7, "log_tail": []}
    stubs.facts["Left"] = {"state": "failed", "error": error, "reason": "boom"}
    states = [run_node(shared, name, engine=engine).state for name in shared.nodes]
    assert states == ["ran", "failed", "ran", "not_reached"]
    del stubs.facts["Left"]
    states = [run_node(shared, name, engine=engine).state for name in shared.nodes]
    assert states == ["ran"] * 4
    record = end_run(shared)
    assert (record.status, record.error) == ("succeeded", None)
    assert _check_whole(shared) == record
    assert stubs.starts().count("Right") == 1
