"""begin_run called again with the same run id, as a scheduler does after a kill."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from runners.engine import Capabilities
from runners.operations.cancel import CancelRequest, cancel
from runners.operations.complete_killed_runs import complete_killed_runs
from runners.operations.run import RunRequest
from runners.operations.run_node import begin_run, end_run, run_node
from sluice.errors import UsageError
from sluice.record.fold import fold
from sluice.record.journal import Journal
from sluice.record.run_record import RunRecord

pytestmark = pytest.mark.unit

RUN_ID = "20260101T000000Z-airflow"
REQUEST = RunRequest(name="digits")


@pytest.fixture
def engine(written: Any) -> Any:
    able = Capabilities(run_node=True, resume=True)
    return importlib.import_module("memory_engine").MemoryEngine(able)


def _begin_and_die(engine: Any, place: str) -> None:
    """Calls ``begin_run`` in a process that SIGKILL ends where it calls ``place``."""

    def kill(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def begin() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(place, kill)
            begin_run(REQUEST, engine=engine, run_id=RUN_ID)

    process = multiprocessing.get_context("fork").Process(target=begin)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def _check_begun_again(engine: Any, run_dir: Path) -> None:
    run = begin_run(REQUEST, engine=engine, run_id=RUN_ID)
    assert run.run_dir == run_dir
    for node in run.nodes:
        assert run_node(run, node, engine=engine).state == "ran"
    record = end_run(run, engine=engine)
    assert (record.status, record.exit_code) == ("succeeded", 0)
    assert not [note for note in record.notes if "killed" in note]
    assert RunRecord.load(run_dir) == record == fold(Journal(run_dir).events())


@pytest.mark.parametrize(
    "place",
    [
        "runners.operations.run.write_stored_config",
        "runners.operations.run_node.record_inputs",
        "memory_engine.MemoryEngine.prepare",
        "sluice.run_lock.RunLock.share",
        "sluice.run_lock.RunLock._release",
    ],
)
def test_a_run_whose_begin_was_killed_is_begun_again(
    written: Any, engine: Any, place: str
) -> None:
    _begin_and_die(engine, place)
    _check_begun_again(engine, written.workspace.run_dir(RUN_ID))


def test_also_if_its_record_was_completed_meanwhile(written: Any, engine: Any) -> None:
    _begin_and_die(engine, "memory_engine.MemoryEngine.prepare")
    assert complete_killed_runs(written.workspace) == [RUN_ID]
    _check_begun_again(engine, written.workspace.run_dir(RUN_ID))


def test_a_shared_run_is_returned_as_it_is(engine: Any) -> None:
    run = begin_run(REQUEST, engine=engine, run_id=RUN_ID)
    run_node(run, run.nodes[0], engine=engine)
    again = begin_run(REQUEST, engine=engine, run_id=RUN_ID)
    assert (again, again.nodes) == (run, run.nodes)
    assert RunRecord.load(run.run_dir).nodes[0].state == "ran"


def test_a_run_whose_nodes_have_run_is_not_begun_again(engine: Any) -> None:
    run = begin_run(REQUEST, engine=engine, run_id=RUN_ID)
    run_node(run, run.nodes[0], engine=engine)
    ended = end_run(run, engine=engine)
    with pytest.raises(UsageError, match=f"run {RUN_ID} cannot be begun again") as info:
        begin_run(REQUEST, engine=engine, run_id=RUN_ID)
    assert info.value.actual == f"it was begun before, and has {ended.status}"
    assert RunRecord.load(run.run_dir) == ended


def test_a_cancelled_run_is_not_begun_again(engine: Any) -> None:
    begin_run(REQUEST, engine=engine, run_id=RUN_ID)
    cancel(CancelRequest(name="digits"))
    with pytest.raises(UsageError, match="cannot be begun again"):
        begin_run(REQUEST, engine=engine, run_id=RUN_ID)


def test_the_id_of_a_new_run_is_later_than_all_others(
    written: Any, engine: Any
) -> None:
    written.fail(written.SECOND)
    for run_id in (RUN_ID, "tomorrow"):
        with pytest.raises(UsageError, match="is not a valid id for a new run"):
            begin_run(REQUEST, engine=engine, run_id=run_id)


def test_an_engine_that_cannot_run_nodes_one_by_one(written: Any, engine: Any) -> None:
    engine.capabilities = Capabilities()
    with pytest.raises(UsageError, match="MemoryEngine cannot run nodes one by one"):
        begin_run(REQUEST, engine=engine)
    assert written.workspace.run_ids() == []
