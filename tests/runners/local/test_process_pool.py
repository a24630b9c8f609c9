"""Processes of jobs: start, status, output, and clean-up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pool_messages import (
    DEADLINE_S,
    make_job,
    messages_until,
    read_pids,
    wait_for,
)

from pipeline.graph.locations import LOCAL_BEAM_ARGS
from runners.local.processes.process_pool import START_METHOD, ProcessPool, start_method
from sluice.errors import NodeError, UsageError

fault = pytest.mark.fault
tf = pytest.mark.tf


@fault
def test_messages_of_a_job(bare: ProcessPool, jobs_dir: Path) -> None:
    bare.start(
        "one", make_job(jobs_dir, "write", path=str(jobs_dir / "out"), text="hi")
    )
    ready, started, ended = messages_until(bare, "ended")
    assert ready["ready"] > 0 and bare.ready
    assert started["started"] == "one" and started["pid"] > 0
    assert (ended["ended"], ended["status"]) == ("one", 0)
    assert 1e6 < ended["peak_memory_bytes"] < 10e9
    assert (jobs_dir / "out").read_text() == "hi!"
    assert bare.messages(0.05) == []


@fault
@pytest.mark.parametrize(
    ("function", "arguments", "status"),
    [
        ("fail", {"message": "no"}, 1),
        ("not_there", {}, 1),
        ("end", {"number": signal.SIGKILL}, -9),
        ("end", {"number": signal.SIGABRT}, -6),
    ],
)
def test_the_exit_status_of_a_job(
    bare: ProcessPool, jobs_dir: Path, function: str, arguments: dict, status: int
) -> None:
    bare.start("one", make_job(jobs_dir, function, **arguments))
    assert messages_until(bare, "ended")[-1]["status"] == status


@fault
def test_output_before_a_kill_is_in_the_log(
    jobs_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with ProcessPool(jobs_dir / "start.log", cwd=jobs_dir, modules=()) as process_pool:
        process_pool.start("one", make_job(jobs_dir, "end", number=signal.SIGKILL))
        messages_until(process_pool, "ended")
    assert (jobs_dir / "job.log").read_text() == "about to end\n"


@fault
def test_jobs_run_in_parallel_and_names_are_reusable(
    bare: ProcessPool, jobs_dir: Path, is_gone: Callable[[int], bool]
) -> None:
    for name in ("a", "b"):
        bare.start(name, make_job(jobs_dir, "wait", ready=str(jobs_dir / name)))
    pids = [read_pids(jobs_dir / name)[0] for name in ("a", "b")]
    assert not any(is_gone(pid) for pid in pids)
    bare.signal("a", signal.SIGTERM)
    (ended,) = [
        message for message in messages_until(bare, "ended") if "ended" in message
    ]
    assert (ended["ended"], ended["status"]) == ("a", -signal.SIGTERM)
    bare.start(
        "a", make_job(jobs_dir, "write", path=str(jobs_dir / "out"), text="again")
    )
    assert messages_until(bare, "ended")[-1]["ended"] == "a"
    assert not is_gone(pids[1])
    bare.signal("b", signal.SIGKILL)
    assert messages_until(bare, "ended")[-1]["status"] == -signal.SIGKILL


@fault
def test_children_of_a_job_end_with_it(
    bare: ProcessPool, jobs_dir: Path, is_gone: Callable[[int], bool]
) -> None:
    path = jobs_dir / "pids"
    bare.start("one", make_job(jobs_dir, "leave", pids=str(path), new_session=False))
    messages_until(bare, "ended")
    wait_for(lambda: all(map(is_gone, read_pids(path))), "the job's own child to end")


@fault
@pytest.mark.parametrize("new_session", [False, True])
@pytest.mark.parametrize("function", ["leave", "leave_and_wait"])
def test_closing_ends_all_processes_in_other_sessions_too(
    jobs_dir: Path, function: str, new_session: bool, is_gone: Callable[[int], bool]
) -> None:
    path = jobs_dir / "pids"
    with ProcessPool(jobs_dir / "start.log", cwd=jobs_dir, modules=()) as process_pool:
        job = make_job(jobs_dir, function, pids=str(path), new_session=new_session)
        process_pool.start("one", job)
        pids = read_pids(path)
        assert process_pool.messages(DEADLINE_S)
        zygote = process_pool.pid
    assert all(map(is_gone, [zygote, *pids]))


@fault
def test_the_end_of_the_scheduler_ends_all_processes(
    jobs_dir: Path, is_gone: Callable[[int], bool]
) -> None:
    """SIGKILL of the process that holds the other end, as ``kill -9`` does it."""
    path = jobs_dir / "pids"
    job = make_job(jobs_dir, "leave_and_wait", pids=str(path), new_session=True)
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from runners.local.processes.job import Job\n"
        "from runners.local.processes.process_pool import ProcessPool\n"
        "root = Path(sys.argv[1])\n"
        "process_pool = ProcessPool(root / 'start.log', cwd=root, modules=())\n"
        f"process_pool.start('one', Job(**{job.to_dict()!r}))\n"
        "(root / 'zygote').write_text(str(process_pool.pid))\n"
        f"time.sleep({DEADLINE_S})\n"
    )
    scheduler = subprocess.Popen([sys.executable, "-c", program, str(jobs_dir)])
    pids = [*read_pids(path), *read_pids(jobs_dir / "zygote")]
    scheduler.kill()
    scheduler.wait()
    wait_for(lambda: all(map(is_gone, pids)), f"the processes {pids} to end")


@fault
@pytest.mark.parametrize("killed", ["nobody", "zygote", "scheduler"])
def test_temporary_files_are_deleted_after_the_run(
    jobs_dir: Path, killed: str, is_gone: Callable[[int], bool]
) -> None:
    temporary, ready = jobs_dir / "tmp", jobs_dir / "ready"
    temporary.mkdir()
    job = make_job(jobs_dir, "keep_temporary_file", ready=str(ready))
    program = (
        "import os, signal, sys, time\n"
        "from pathlib import Path\n"
        "from runners.local.processes.job import Job\n"
        "from runners.local.processes.process_pool import ProcessPool\n"
        "root = Path(sys.argv[1])\n"
        "with ProcessPool(root / 'start.log', cwd=root, modules=()) as process_pool:\n"
        f"    process_pool.start('one', Job(**{job.to_dict()!r}))\n"
        "    (root / 'zygote').write_text(str(process_pool.pid))\n"
        "    sys.stdin.read()\n"
    )
    scheduler = subprocess.Popen(
        [sys.executable, "-c", program, str(jobs_dir)],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
    )
    with scheduler:
        assert scheduler.stdin
        wait_for(lambda: ready.exists() and ready.read_text(), "the file")
        (folder,) = temporary.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert Path(ready.read_text()).parent == folder
        (zygote,) = read_pids(jobs_dir / "zygote")
        if killed == "zygote":
            os.kill(zygote, signal.SIGKILL)
        elif killed == "scheduler":
            scheduler.kill()
        scheduler.stdin.close()
        scheduler.wait()
        wait_for(lambda: is_gone(zygote), "the zygote to end")
    assert list(temporary.iterdir()) == []


@fault
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_packages_in_the_working_directory_do_not_hide_ours(
    jobs_dir: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setenv(START_METHOD, method)
    for name in ("runners", "sluice"):
        (jobs_dir / name).mkdir()
        (jobs_dir / name / "__init__.py").write_text("raise ImportError('not ours')\n")
    with ProcessPool(jobs_dir / "start.log", cwd=jobs_dir, modules=()) as process_pool:
        job = make_job(jobs_dir, "write", path=str(jobs_dir / "out"), text="hi")
        process_pool.start("one", job)
        assert messages_until(process_pool, "ended")[-1]["status"] == 0


@fault
def test_a_process_pool_without_a_run_leaves_nothing(
    jobs_dir: Path, is_gone: Callable[[int], bool]
) -> None:
    before = set(jobs_dir.iterdir())
    with ProcessPool(cwd=jobs_dir, modules=()) as process_pool:
        zygote = process_pool.pid
    assert is_gone(zygote)
    assert {path for path in jobs_dir.iterdir() if path.suffix != ".pyc"} == before


@fault
def test_a_killed_zygote_is_an_error_and_ends_its_jobs(
    bare: ProcessPool, jobs_dir: Path, is_gone: Callable[[int], bool]
) -> None:
    bare.start("one", make_job(jobs_dir, "wait", ready=str(jobs_dir / "ready")))
    (pid,) = read_pids(jobs_dir / "ready")
    messages_until(bare, "started")
    os.kill(bare.pid, signal.SIGKILL)
    with pytest.raises(NodeError, match="that runs the nodes was killed by signal 9"):
        messages_until(bare, "ended")
    wait_for(lambda: is_gone(pid), "the job to end with the zygote")
    with pytest.raises(NodeError, match="run it again; finished nodes are kept"):
        bare.start("two", make_job(jobs_dir, "wait", ready=str(jobs_dir / "ready")))


@fault
def test_a_zygote_that_cannot_import_is_an_error_with_its_log(jobs_dir: Path) -> None:
    log = jobs_dir / "start.log"
    with (
        ProcessPool(log, cwd=jobs_dir, modules=("no_such_module",)) as process_pool,
        pytest.raises(NodeError, match=r"ended its process with status 1\n.*start.log"),
    ):
        messages_until(process_pool, "ready")
    assert "No module named 'no_such_module'" in log.read_text()


@pytest.mark.unit
def test_another_start_method_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(START_METHOD, raising=False)
    assert start_method() == "fork"
    monkeypatch.setenv(START_METHOD, "spoon")
    with pytest.raises(UsageError, match="expected: fork or spawn\n  found:    spoon"):
        ProcessPool(tmp_path / "start.log", cwd=tmp_path)


@fault
def test_a_spawned_job_runs_and_ends_with_the_process_pool(
    jobs_dir: Path, monkeypatch: pytest.MonkeyPatch, is_gone: Callable[[int], bool]
) -> None:
    monkeypatch.setenv(START_METHOD, "spawn")
    with ProcessPool(jobs_dir / "start.log", cwd=jobs_dir) as process_pool:
        out = jobs_dir / "out"
        process_pool.start(
            "one", make_job(jobs_dir, "write", path=str(out), text="spawned")
        )
        assert messages_until(process_pool, "ended")[-1]["status"] == 0
        assert out.read_text() == "spawned!"
        assert (jobs_dir / "job.log").read_text() == "about to write\n"
        process_pool.start(
            "two", make_job(jobs_dir, "wait", ready=str(jobs_dir / "ready"))
        )
        (pid,) = read_pids(jobs_dir / "ready")
    assert is_gone(pid)


@tf
def test_a_pipeline_runs_in_spawned_processes(
    make_foreign, own, jobs_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(START_METHOD, "spawn")
    foreign = make_foreign()
    with ProcessPool(jobs_dir / "start.log", cwd=jobs_dir) as process_pool:
        make = own.Make(trace=foreign.trace("Make"))
        run = foreign.run([make], process_pool=process_pool)
    assert run.states == {"Make": "ran"}
    assert (run.uri("Make") / own.FILE).read_text() == "hello"


@tf
def test_nodes_open_no_port(foreign, own) -> None:
    """TFX's launcher starts a gRPC server that writes into ML Metadata for anybody."""
    listens = own.Listen(trace=foreign.trace("Python"))
    beam = own.ListenInBeam(trace=foreign.trace("Beam"))
    # As our pipelines run Beam. Newer Beam's default runner has a server of its own.
    beam.with_beam_pipeline_args(list(LOCAL_BEAM_ARGS))
    run = foreign.run([listens, beam])
    assert set(run.states.values()) == {"ran"}
    own_server, without = foreign.notes("Python")
    assert own_server["servers"] == [own_server["port"]]
    assert [note["servers"] for note in [without, *foreign.notes("Beam")]] == [[], []]
