"""A process pool that serves several runs: logs, locks, temporary files, restarts."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pool_messages import make_job, messages_until, read_pids, wait_for

from runners.engine import Plan
from runners.local.engine import LocalEngine
from runners.local.processes import process_pool as process_pool_module
from runners.local.processes.process_pool import START_METHOD, ProcessPool
from sluice.errors import NodeError
from sluice.storage import atomic

fault = pytest.mark.fault
tf = pytest.mark.tf


@fault
def test_a_prewarmed_process_pool_gets_the_runs_log_and_lock(
    jobs_dir: Path,
) -> None:
    log, lock_file = jobs_dir / "logs" / "start.log", jobs_dir / "lock"
    (jobs_dir / "chatty.py").write_text("print('said while it was imported')\n")
    with ProcessPool(cwd=jobs_dir, modules=("chatty",)) as process_pool:
        with atomic.lock(lock_file, wait=False) as lock:
            process_pool.belong_to(log, [lock])
            job = make_job(jobs_dir, "wait", ready=str(jobs_dir / "ready"))
            process_pool.start("one", job)
            read_pids(jobs_dir / "ready")
        # The zygote and the job hold it now, and nobody else.
        assert atomic.is_locked(lock_file)
        assert log.read_text() == "said while it was imported\n"
    assert not atomic.is_locked(lock_file)


@fault
def test_each_run_has_its_own_log_and_lock(
    jobs_dir: Path,
) -> None:
    with ProcessPool(cwd=jobs_dir, modules=()) as process_pool:
        for name in ("first", "second"):
            log, lock_file = jobs_dir / f"{name}.log", jobs_dir / f"{name}.lock"
            with atomic.lock(lock_file, wait=False) as lock:
                process_pool.belong_to(log, [lock])
                process_pool.start(
                    "one", make_job(jobs_dir, "say_as_parent", text=name)
                )
                assert messages_until(process_pool, "ended")[-1]["status"] == 0
                process_pool.release()
            assert not atomic.is_locked(lock_file)
            assert log.read_text() == f"{name}\n"


@fault
def test_release_deletes_the_temporary_files_of_the_run(
    jobs_dir: Path,
) -> None:
    (jobs_dir / "keeps.py").write_text(
        "import tempfile\nfrom pathlib import Path\n"
        "Path('of_the_import').write_text(tempfile.mkdtemp())\n"
    )
    with ProcessPool(cwd=jobs_dir, modules=("keeps",)) as process_pool:
        process_pool.belong_to(jobs_dir / "first.log")
        job = make_job(jobs_dir, "leave_temporary_files", path=str(jobs_dir / "out"))
        process_pool.start("one", job)
        assert messages_until(process_pool, "ended")[-1]["status"] == 0
        left = [Path(name) for name in (jobs_dir / "out").read_text().split()]
        assert all(path.exists() for path in left)
        process_pool.release()
        assert not any(path.exists() for path in left)
        # Such as matplotlib's, which the later jobs use as well.
        assert Path((jobs_dir / "of_the_import").read_text()).is_dir()


@fault
def test_a_zygote_that_does_not_answer_is_an_error(
    bare: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages_until(bare, "ready")
    monkeypatch.setattr(process_pool_module, "_GRACE_S", 0.2)
    os.kill(bare.pid, signal.SIGSTOP)
    try:
        with pytest.raises(NodeError, match="does not answer"):
            bare.release()
    finally:
        os.kill(bare.pid, signal.SIGCONT)


@fault
@pytest.mark.parametrize("change", [None, "code", "environment", "killed"])
def test_a_local_engine_reuses_an_up_to_date_zygote(
    jobs_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_gone: Callable[[int], bool],
    change: str | None,
) -> None:
    monkeypatch.setattr(process_pool_module, "PRELOADED", ("preloaded",))
    monkeypatch.setattr("pipeline.graph.node_registry.modules_to_preload", list)
    monkeypatch.setenv("TOKEN", "first")
    code, out = jobs_dir / "preloaded.py", jobs_dir / "out"
    code.write_text(
        "import os\nfrom pathlib import Path\n"
        "def show(path):\n    Path(path).write_text('old ' + os.environ['TOKEN'])\n"
    )
    plan = Plan(run_dir=jobs_dir / "run", workers=1, project_root=jobs_dir)
    job = replace(make_job(jobs_dir, "", path=str(out)), function="preloaded:show")

    def run() -> tuple[int, str]:
        with engine._processes(plan) as process_pool:
            process_pool.start("one", job)
            assert messages_until(process_pool, "ended")[-1]["status"] == 0
            return process_pool.pid, out.read_text()

    with LocalEngine() as engine:
        first, text = run()
        assert text == "old first"
        if change == "code":
            code.write_text(code.read_text().replace("old", "edited"))
        elif change == "environment":
            monkeypatch.setenv("TOKEN", "rotated")
        elif change == "killed":
            os.kill(first, signal.SIGKILL)
            wait_for(lambda: is_gone(first), "the zygote to end")
        second, text = run()
    assert (second == first) == (change is None)
    expected = {"code": "edited first", "environment": "old rotated"}
    assert text == expected.get(change or "", "old first")


@tf
def test_a_kept_zygote_that_dies_is_replaced(
    jobs_dir: Path, monkeypatch: pytest.MonkeyPatch, is_gone: Callable[[int], bool]
) -> None:
    """Between two runs of a notebook, and after the last node of one."""
    from runners.local import local_runner

    monkeypatch.setenv(START_METHOD, "spawn")
    monkeypatch.setenv("OF_THIS_TEST", "1")
    monkeypatch.chdir(jobs_dir)

    def run(name: str, *, killed: bool = False) -> int:
        log, lock_file = jobs_dir / f"{name}.log", jobs_dir / f"{name}.lock"
        with (
            atomic.lock(lock_file, wait=False) as lock,
            local_runner.LocalRunner()._processes(log, lock) as process_pool,
        ):
            job = make_job(jobs_dir, "write", path=str(jobs_dir / name), text=name)
            process_pool.start(name, job)
            assert messages_until(process_pool, "ended")[-1]["status"] == 0
            if killed:
                os.kill(process_pool.pid, signal.SIGKILL)
        assert (jobs_dir / name).read_text() == f"{name}!"
        assert not atomic.is_locked(lock_file)
        return process_pool.pid

    try:
        first = run("first")
        assert run("second") == first
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: is_gone(first), "the zygote to end")
        third = run("third", killed=True)
        assert third != first
        assert run("fourth") != third
    finally:
        local_runner._close_kept()
