"""``begin_run``, ``run_node`` and ``end_run`` with TFX, a call per node."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sluice.errors import LockedError, UsageError
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace

if TYPE_CHECKING:
    from runners.local.engine import LocalEngine
    from runners.operations.run import RunRequest
    from runners.operations.run_node import SharedRun

pytestmark = pytest.mark.tf

GATE = "DataGate"


@pytest.fixture(scope="module")
def engine(process_pool) -> LocalEngine:
    from runners.local.engine import LocalEngine

    return LocalEngine(process_pool)


@pytest.fixture
def request_to(project: Path, tmp_path: Path) -> Callable[[str], RunRequest]:
    from runners.operations.run import RunRequest

    def request(node: str) -> RunRequest:
        return RunRequest(
            name=str(project / "configs" / "digits.yaml"),
            workspace_dir=str(tmp_path),
            command="test",
            to_nodes=(node,),
        )

    return request


@pytest.fixture
def shared(request_to: Callable[[str], RunRequest], engine: LocalEngine) -> SharedRun:
    from runners.operations.run_node import begin_run

    return begin_run(request_to(GATE), engine=engine)


def test_a_run_node_by_node(
    shared: SharedRun,
    engine: LocalEngine,
    request_to: Callable[[str], RunRequest],
) -> None:
    from runners.operations.run import run
    from runners.operations.run_node import begin_run, end_run, run_node

    assert GATE in shared.nodes
    with pytest.raises(UsageError, match="cannot run yet: TFRecordGen"):
        run_node(shared, "StatisticsGen", engine=engine)
    with pytest.raises(LockedError, match=f"shared run {shared.run_id}, since"):
        run(request_to(GATE), engine=engine)
    assert begin_run(request_to(GATE), engine=engine, run_id=shared.run_id) == shared
    states = {}
    for node in shared.nodes:
        states[node] = run_node(shared, node, engine=engine).state
    assert states["TFRecordGen"] == states[GATE] == "ran"
    assert states["Trainer"] == "skipped"
    before = RunRecord.load(shared.run_dir)
    assert run_node(shared, GATE, engine=engine).attempts == 1
    assert RunRecord.load(shared.run_dir) == before
    record = end_run(shared)
    assert (record.status, record.exit_code) == ("succeeded", 0), record.error
    assert [gate["gate"] for gate in record.gates] == ["data"]
    assert end_run(shared) == record
    assert not Workspace(shared.workspace).is_running()
    with pytest.raises(UsageError, match="is not shared"):
        run_node(shared, GATE, engine=engine)


def test_a_shared_run_that_was_ended_early_can_be_resumed(
    shared: SharedRun, engine: LocalEngine, tmp_path: Path, project: Path
) -> None:
    from runners.operations.resume import ResumeRequest, resume
    from runners.operations.run_node import end_run, run_node

    run_node(shared, "TFRecordGen", engine=engine)
    failed = end_run(shared)
    assert (failed.status, failed.exit_code) == ("failed", 7)
    assert failed.error and "left to run" in failed.error.message
    request = ResumeRequest(
        name=str(project / "configs" / "digits.yaml"), workspace_dir=str(tmp_path)
    )
    record = resume(request, engine=engine)
    assert (record.run_id, record.status) == (shared.run_id, "succeeded")
    assert record.node("TFRecordGen").attempts == 1


def test_another_run_takes_over_from_an_abandoned_one(
    shared: SharedRun, engine: LocalEngine, request_to: Callable[[str], RunRequest]
) -> None:
    from runners.operations.run import run

    os.utime(Workspace(shared.workspace).lock_file, (time.time() - 7 * 3600,) * 2)
    record = run(request_to("TFRecordGen"), engine=engine)
    assert record.status == "succeeded"
    assert any(shared.run_id in note for note in record.notes)
    assert RunRecord.load(shared.run_dir).status == "interrupted"
