"""Run lock of shared runs: exclusive to one run, joined by its processes, released."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from pathlib import Path

import pytest

from sluice.errors import LockedError, UsageError
from sluice.run_lock import ANY, cancel_command
from sluice.storage import atomic
from sluice.workspace import Workspace

pytestmark = pytest.mark.unit

RUN = "20260101T000000Z-0000"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace(tmp_path / "digits")
    made.prepare()
    return made


def _share(workspace: Workspace, silent_s: float = 60.0) -> None:
    with workspace.exclusive("begin") as lock:
        lock.share(RUN, "begin", silent_s)


def _join(root: str, ready: str) -> None:
    with Workspace(Path(root)).join(RUN):
        Path(ready).touch()
        time.sleep(60)


def test_a_shared_run_keeps_other_runs_out(workspace: Workspace) -> None:
    _share(workspace)
    assert workspace.is_running()
    with pytest.raises(LockedError, match=f"shared run {RUN}, since"):
        workspace.exclusive("sluice run digits").__enter__()
    with pytest.raises(LockedError):
        workspace.exclusive("sluice status", brief=True).__enter__()
    assert workspace.is_running()


def test_several_processes_join_at_once(workspace: Workspace) -> None:
    _share(workspace)
    with workspace.join(RUN), workspace.join(RUN), pytest.raises(LockedError):
        workspace.exclusive("end", end_shared=ANY).__enter__()
    with pytest.raises(LockedError):
        workspace.exclusive("end", end_shared="other").__enter__()
    with workspace.exclusive("end", end_shared=RUN) as lock:
        assert (lock.ended_run, lock.note) == (RUN, None)
    assert not workspace.is_running()


def test_an_ended_run_cannot_be_joined(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match=f"run {RUN} is not shared") as info:
        workspace.join(RUN).__enter__()
    place = workspace.root.parent
    assert info.value.hint == f"sluice resume digits --workspace {place}"
    _share(workspace)
    with pytest.raises(UsageError, match="run other is not shared"):
        workspace.join("other").__enter__()


def test_the_lock_of_an_abandoned_run_is_taken_over(workspace: Workspace) -> None:
    _share(workspace, silent_s=5.0)
    os.utime(workspace.lock_file, (time.time() - 6,) * 2)
    assert not workspace.is_running()
    with workspace.exclusive("sluice run digits") as lock:
        assert lock.note and RUN in lock.note
    assert not workspace.is_running()


def test_a_run_whose_node_runs_is_not_abandoned(
    workspace: Workspace, tmp_path: Path
) -> None:
    _share(workspace, silent_s=0.0)
    ready = tmp_path / "ready"
    context = multiprocessing.get_context("fork")
    node = context.Process(target=_join, args=(str(workspace.root), str(ready)))
    node.start()
    while not ready.exists():
        time.sleep(0.01)
    try:
        with pytest.raises(LockedError):
            workspace.exclusive("sluice run digits").__enter__()
    finally:
        node.kill()
        node.join()
    with workspace.exclusive("sluice run digits"):
        pass


def test_the_lock_is_taken_over_if_the_clock_was_set_back(
    workspace: Workspace,
) -> None:
    _share(workspace)
    os.utime(workspace.lock_file, (time.time() + 7200,) * 2)
    assert not workspace.is_running()
    with workspace.exclusive("sluice run digits") as lock:
        assert lock.note and RUN in lock.note


def test_a_test_of_the_lock_keeps_nobody_out(workspace: Workspace) -> None:
    """``sluice status`` tests the lock of a shared run by taking it for a moment."""
    _share(workspace)

    def test_lock(held: threading.Event) -> None:
        with atomic.lock(workspace.lock_file):
            held.set()
            time.sleep(0.3)

    for join in (
        lambda: workspace.join(RUN),
        lambda: workspace.exclusive("end", end_shared=RUN),
    ):
        held = threading.Event()
        thread = threading.Thread(target=test_lock, args=(held,))
        thread.start()
        held.wait()
        with join():
            pass
        thread.join()


def test_the_command_that_cancels_names_a_workspace_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock_file = Workspace(tmp_path / "workspace" / "digits").lock_file
    monkeypatch.chdir(tmp_path)
    assert cancel_command(lock_file) == "sluice cancel digits"
    monkeypatch.chdir("/")
    place = tmp_path / "workspace"
    assert cancel_command(lock_file) == f"sluice cancel digits --workspace {place}"
