"""The processes that jobs run in: how they begin, and that none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.graph.locations import LOCAL_BEAM_ARGS
from runners.engine import Plan
from runners.local.engine import LocalEngine
from runners.local.processes import process_pool as process_pool_module
from runners.local.processes.job import Job
from runners.local.processes.process_pool import START_METHOD, ProcessPool, start_method
from sluice.errors import NodeError, UsageError
from sluice.storage import atomic

fault = pytest.mark.fault
tf = pytest.mark.tf

DEADLINE_S = 120.0
# Found from the working directory, where the zygote looks.
JOBS = '''
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SLEEP = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(300)"


def write(path, text):
    print("about to write")
    Path(path).write_text(text + os.environ.get("OF_THE_JOB", ""))


def wait(ready):
    print("about to wait")
    Path(ready).write_text(str(os.getpid()))
    time.sleep(300)


def leave_temporary_files(path):
    folder = tempfile.mkdtemp()
    Path(folder, "inside").touch()
    with tempfile.NamedTemporaryFile(delete=False) as file:
        Path(path).write_text(f"{folder} {file.name}")


def say_as_parent(text):
    """Writes where the zygote's own output goes."""
    with open(f"/proc/{os.getppid()}/fd/1", "a") as file:
        print(text, file=file)


def fail(message):
    raise ValueError(message)


def end(number):
    print("about to end")
    os.kill(os.getpid(), number)


def keep_temporary_file(ready):
    """What AutoGraph does for each function that it converts."""
    with tempfile.NamedTemporaryFile(delete=False) as file:
        Path(ready).write_text(file.name)
    subprocess.run(["mktemp"], check=True)
    time.sleep(300)


def leave(pids, new_session):
    """Leaves a process behind that ignores what can be ignored."""
    child = subprocess.Popen(
        [sys.executable, "-c", SLEEP, pids + ".ready"],
        start_new_session=new_session,
        preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    )
    while not Path(pids + ".ready").exists():
        time.sleep(0.01)
    Path(pids).write_text(f"{os.getpid()} {child.pid}")


def leave_and_wait(pids, new_session):
    leave(pids, new_session)
    time.sleep(300)
'''


@pytest.fixture
def jobs_dir(tmp_path: Path) -> Path:
    (tmp_path / "tiny_jobs.py").write_text(JOBS)
    return tmp_path


@pytest.fixture
def bare(jobs_dir: Path) -> Iterator[ProcessPool]:
    """A process pool that imports nothing beforehand."""
    with ProcessPool(jobs_dir / "start.log", cwd=jobs_dir, modules=()) as process_pool:
        yield process_pool


def _job(root: Path, function: str, **arguments: Any) -> Job:
    log, environment = str(root / "job.log"), {"OF_THE_JOB": "!"}
    return Job(f"tiny_jobs:{function}", arguments, log, environment)


def _wait_for(found: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if result := found():
            return result
        time.sleep(0.02)
    pytest.fail(f"waited in vain for {what}")


def _messages_until(process_pool: ProcessPool, key: str) -> list[dict[str, Any]]:
    """Returns all messages up to the first that has a key."""
    found: list[dict[str, Any]] = []

    def told() -> bool:
        found.extend(process_pool.messages(0.1))
        return any(key in message for message in found)

    _wait_for(told, f"the message {key!r}")
    return found


def _pids(path: Path) -> list[int]:
    text = _wait_for(lambda: path.exists() and path.read_text(), f"{path}")
    return [int(pid) for pid in text.split()]


@fault
def test_a_job_is_told_of_when_it_starts_and_ends(
    bare: ProcessPool, jobs_dir: Path
) -> None:
    bare.start("one", _job(jobs_dir, "write", path=str(jobs_dir / "out"), text="hi"))
    ready, started, ended = _messages_until(bare, "ended")
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
def test_the_status_is_that_of_the_process(
    bare: ProcessPool, jobs_dir: Path, function: str, arguments: dict, status: int
) -> None:
    bare.start("one", _job(jobs_dir, function, **arguments))
    assert _messages_until(bare, "ended")[-1]["status"] == status


@fault
def test_what_was_printed_before_a_kill_is_in_the_log(
    jobs_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with ProcessPool(jobs_dir / "start.log", cwd=jobs_dir, modules=()) as process_pool:
        process_pool.start("one", _job(jobs_dir, "end", number=signal.SIGKILL))
        _messages_until(process_pool, "ended")
    assert (jobs_dir / "job.log").read_text() == "about to end\n"


@fault
def test_names_are_free_again_and_jobs_run_side_by_side(
    bare: ProcessPool, jobs_dir: Path, is_gone: Callable[[int], bool]
) -> None:
    for name in ("a", "b"):
        bare.start(name, _job(jobs_dir, "wait", ready=str(jobs_dir / name)))
    pids = [_pids(jobs_dir / name)[0] for name in ("a", "b")]
    assert not any(is_gone(pid) for pid in pids)
    bare.signal("a", signal.SIGTERM)
    (ended,) = [
        message for message in _messages_until(bare, "ended") if "ended" in message
    ]
    assert (ended["ended"], ended["status"]) == ("a", -signal.SIGTERM)
    bare.start("a", _job(jobs_dir, "write", path=str(jobs_dir / "out"), text="again"))
    assert _messages_until(bare, "ended")[-1]["ended"] == "a"
    assert not is_gone(pids[1])
    bare.signal("b", signal.SIGKILL)
    assert _messages_until(bare, "ended")[-1]["status"] == -signal.SIGKILL


@fault
def test_what_a_job_leaves_in_its_group_ends_with_it(
    bare: ProcessPool, jobs_dir: Path, is_gone: Callable[[int], bool]
) -> None:
    path = jobs_dir / "pids"
    bare.start("one", _job(jobs_dir, "leave", pids=str(path), new_session=False))
    _messages_until(bare, "ended")
    _wait_for(lambda: all(map(is_gone, _pids(path))), "the job's own child to end")


@fault
@pytest.mark.parametrize("new_session", [False, True])
@pytest.mark.parametrize("function", ["leave", "leave_and_wait"])
def test_closing_ends_everything_also_in_other_sessions(
    jobs_dir: Path, function: str, new_session: bool, is_gone: Callable[[int], bool]
) -> None:
    path = jobs_dir / "pids"
    with ProcessPool(jobs_dir / "start.log", cwd=jobs_dir, modules=()) as process_pool:
        job = _job(jobs_dir, function, pids=str(path), new_session=new_session)
        process_pool.start("one", job)
        pids = _pids(path)
        assert process_pool.messages(DEADLINE_S)
        zygote = process_pool.pid
    assert all(map(is_gone, [zygote, *pids]))


@fault
def test_the_end_of_the_scheduler_ends_everything(
    jobs_dir: Path, is_gone: Callable[[int], bool]
) -> None:
    """SIGKILL of the process that holds the other end, as ``kill -9`` does it."""
    path = jobs_dir / "pids"
    job = _job(jobs_dir, "leave_and_wait", pids=str(path), new_session=True)
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
    pids = [*_pids(path), *_pids(jobs_dir / "zygote")]
    scheduler.kill()
    scheduler.wait()
    _wait_for(lambda: all(map(is_gone, pids)), f"the processes {pids} to end")


@fault
@pytest.mark.parametrize("killed", ["nobody", "zygote", "scheduler"])
def test_temporary_files_end_with_the_run(
    jobs_dir: Path, killed: str, is_gone: Callable[[int], bool]
) -> None:
    temporary, ready = jobs_dir / "tmp", jobs_dir / "ready"
    temporary.mkdir()
    job = _job(jobs_dir, "keep_temporary_file", ready=str(ready))
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
        _wait_for(lambda: ready.exists() and ready.read_text(), "the file")
        (folder,) = temporary.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert Path(ready.read_text()).parent == folder
        (zygote,) = _pids(jobs_dir / "zygote")
        if killed == "zygote":
            os.kill(zygote, signal.SIGKILL)
        elif killed == "scheduler":
            scheduler.kill()
        scheduler.stdin.close()
        scheduler.wait()
        _wait_for(lambda: is_gone(zygote), "the zygote to end")
    assert list(temporary.iterdir()) == []


@fault
def test_a_process_pool_that_began_before_its_run_takes_the_runs_log_and_lock(
    jobs_dir: Path,
) -> None:
    log, lock_file = jobs_dir / "logs" / "start.log", jobs_dir / "lock"
    (jobs_dir / "chatty.py").write_text("print('said while it was imported')\n")
    with ProcessPool(cwd=jobs_dir, modules=("chatty",)) as process_pool:
        with atomic.lock(lock_file, wait=False) as lock:
            process_pool.belong_to(log, [lock])
            job = _job(jobs_dir, "wait", ready=str(jobs_dir / "ready"))
            process_pool.start("one", job)
            _pids(jobs_dir / "ready")
        # The zygote and the job hold it now, and nobody else.
        assert atomic.is_locked(lock_file)
        assert log.read_text() == "said while it was imported\n"
    assert not atomic.is_locked(lock_file)


@fault
def test_runs_one_after_another_have_logs_and_locks_of_their_own(
    jobs_dir: Path,
) -> None:
    with ProcessPool(cwd=jobs_dir, modules=()) as process_pool:
        for name in ("first", "second"):
            log, lock_file = jobs_dir / f"{name}.log", jobs_dir / f"{name}.lock"
            with atomic.lock(lock_file, wait=False) as lock:
                process_pool.belong_to(log, [lock])
                process_pool.start("one", _job(jobs_dir, "say_as_parent", text=name))
                assert _messages_until(process_pool, "ended")[-1]["status"] == 0
                process_pool.release()
            assert not atomic.is_locked(lock_file)
            assert log.read_text() == f"{name}\n"


@fault
def test_temporary_files_of_a_run_end_with_it_where_the_zygote_is_kept(
    jobs_dir: Path,
) -> None:
    (jobs_dir / "keeps.py").write_text(
        "import tempfile\nfrom pathlib import Path\n"
        "Path('of_the_import').write_text(tempfile.mkdtemp())\n"
    )
    with ProcessPool(cwd=jobs_dir, modules=("keeps",)) as process_pool:
        process_pool.belong_to(jobs_dir / "first.log")
        job = _job(jobs_dir, "leave_temporary_files", path=str(jobs_dir / "out"))
        process_pool.start("one", job)
        assert _messages_until(process_pool, "ended")[-1]["status"] == 0
        left = [Path(name) for name in (jobs_dir / "out").read_text().split()]
        assert all(path.exists() for path in left)
        process_pool.release()
        assert not any(path.exists() for path in left)
        # Such as matplotlib's, which the later jobs use as well.
        assert Path((jobs_dir / "of_the_import").read_text()).is_dir()


@fault
def test_a_zygote_that_does_not_answer_is_not_waited_for(
    bare: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    _messages_until(bare, "ready")
    monkeypatch.setattr(process_pool_module, "_GRACE_S", 0.2)
    os.kill(bare.pid, signal.SIGSTOP)
    try:
        with pytest.raises(NodeError, match="does not answer"):
            bare.release()
    finally:
        os.kill(bare.pid, signal.SIGCONT)


@fault
@pytest.mark.parametrize("change", [None, "code", "environment", "killed"])
def test_a_local_engine_keeps_its_zygote_while_it_is_up_to_date(
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
    job = replace(_job(jobs_dir, "", path=str(out)), function="preloaded:show")

    def run() -> tuple[int, str]:
        with engine._processes(plan) as process_pool:
            process_pool.start("one", job)
            assert _messages_until(process_pool, "ended")[-1]["status"] == 0
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
            _wait_for(lambda: is_gone(first), "the zygote to end")
        second, text = run()
    assert (second == first) == (change is None)
    expected = {"code": "edited first", "environment": "old rotated"}
    assert text == expected.get(change or "", "old first")


@tf
def test_a_kept_zygote_that_dies_is_replaced_and_fails_no_run(
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
            job = _job(jobs_dir, "write", path=str(jobs_dir / name), text=name)
            process_pool.start(name, job)
            assert _messages_until(process_pool, "ended")[-1]["status"] == 0
            if killed:
                os.kill(process_pool.pid, signal.SIGKILL)
        assert (jobs_dir / name).read_text() == f"{name}!"
        assert not atomic.is_locked(lock_file)
        return process_pool.pid

    try:
        first = run("first")
        assert run("second") == first
        os.kill(first, signal.SIGKILL)
        _wait_for(lambda: is_gone(first), "the zygote to end")
        third = run("third", killed=True)
        assert third != first
        assert run("fourth") != third
    finally:
        local_runner._close_kept()


@fault
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_packages_of_the_working_directory_hide_none_of_ours(
    jobs_dir: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setenv(START_METHOD, method)
    for name in ("runners", "sluice"):
        (jobs_dir / name).mkdir()
        (jobs_dir / name / "__init__.py").write_text("raise ImportError('not ours')\n")
    with ProcessPool(jobs_dir / "start.log", cwd=jobs_dir, modules=()) as process_pool:
        job = _job(jobs_dir, "write", path=str(jobs_dir / "out"), text="hi")
        process_pool.start("one", job)
        assert _messages_until(process_pool, "ended")[-1]["status"] == 0


@fault
def test_a_process_pool_that_never_had_a_run_leaves_nothing(
    jobs_dir: Path, is_gone: Callable[[int], bool]
) -> None:
    before = set(jobs_dir.iterdir())
    with ProcessPool(cwd=jobs_dir, modules=()) as process_pool:
        zygote = process_pool.pid
    assert is_gone(zygote)
    assert {path for path in jobs_dir.iterdir() if path.suffix != ".pyc"} == before


@fault
def test_a_killed_zygote_is_an_error_and_takes_its_jobs_with_it(
    bare: ProcessPool, jobs_dir: Path, is_gone: Callable[[int], bool]
) -> None:
    bare.start("one", _job(jobs_dir, "wait", ready=str(jobs_dir / "ready")))
    (pid,) = _pids(jobs_dir / "ready")
    _messages_until(bare, "started")
    os.kill(bare.pid, signal.SIGKILL)
    with pytest.raises(NodeError, match="that runs the nodes was killed by signal 9"):
        _messages_until(bare, "ended")
    _wait_for(lambda: is_gone(pid), "the job to end with the zygote")
    with pytest.raises(NodeError, match="run it again; finished nodes are kept"):
        bare.start("two", _job(jobs_dir, "wait", ready=str(jobs_dir / "ready")))


@fault
def test_a_zygote_that_cannot_import_is_an_error_with_its_log(jobs_dir: Path) -> None:
    log = jobs_dir / "start.log"
    with (
        ProcessPool(log, cwd=jobs_dir, modules=("no_such_module",)) as process_pool,
        pytest.raises(NodeError, match=r"ended its process with status 1\n.*start.log"),
    ):
        _messages_until(process_pool, "ready")
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
            "one", _job(jobs_dir, "write", path=str(out), text="spawned")
        )
        assert _messages_until(process_pool, "ended")[-1]["status"] == 0
        assert out.read_text() == "spawned!"
        assert (jobs_dir / "job.log").read_text() == "about to write\n"
        process_pool.start("two", _job(jobs_dir, "wait", ready=str(jobs_dir / "ready")))
        (pid,) = _pids(jobs_dir / "ready")
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
def test_no_node_opens_a_port_by_which_others_reach_it(foreign, own) -> None:
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
