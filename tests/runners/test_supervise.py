"""Signals and kills against the real command; nothing may be left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.fault

DEADLINE_S = 60.0


@pytest.fixture
def running(project: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A ``sluice run`` whose child process has started to import TFX."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "runners.cli.main",
            "run",
            "digits",
            "--json",
            "--workspace",
            str(tmp_path),
        ],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.wait()


def _wait(condition, what: str):
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    pytest.fail(f"waited in vain for {what}")


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()]


def _worker(process: subprocess.Popen[str]) -> int:
    """Returns the child that runs the pipeline, once it has set itself up."""

    def found() -> int | None:
        for child in _children(process.pid):
            maps = Path(f"/proc/{child}/maps").read_text()
            if "tensorflow" in maps:
                return child
        return None

    return _wait(found, "the child process")


def _gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_a_signal_ends_the_run_as_interrupted(
    running: subprocess.Popen[str], number: int, code: int
) -> None:
    worker = _worker(running)
    os.kill(running.pid, number)
    out, err = running.communicate(timeout=DEADLINE_S)
    assert running.returncode == code
    document = json.loads(out)
    assert (document["status"], document["exit_code"]) == ("interrupted", code)
    assert document["resume_command"] in err
    assert _gone(worker)


def test_a_killed_child_is_a_failed_run(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    os.kill(_worker(running), signal.SIGKILL)
    out, err = running.communicate(timeout=DEADLINE_S)
    assert running.returncode == 7
    document = json.loads(out)
    assert document["status"] == "failed"
    assert "killed by signal 9" in document["error"]["message"]
    (record,) = tmp_path.glob("digits/runs/*/run.json")
    assert json.loads(record.read_text()) == document


def test_killing_the_runner_leaves_no_process_and_no_lock(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    from sluice.workspace import Workspace

    worker = _worker(running)
    running.kill()
    running.wait()
    _wait(lambda: _gone(worker), "the child process to die with its parent")
    with Workspace(tmp_path / "digits").exclusive("next"):
        pass


def test_a_second_run_is_refused_with_6(
    running: subprocess.Popen[str], project: Path, tmp_path: Path
) -> None:
    _worker(running)
    command = [*map(str, running.args)]  # type: ignore[arg-type]
    second = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert second.returncode == 6
    assert f'"pid": {running.pid}' in second.stderr
    assert json.loads(second.stdout)["exit_code"] == 6


def test_a_fork_of_user_code_does_not_keep_the_run_waiting(tmp_path: Path) -> None:
    """A process that outlives the child holds the pipe open."""
    from runners.local.supervise import _Followed, _lines

    read_fd, write_fd = os.pipe()
    script = f"echo one >&{write_fd}; sleep 30 & exit 3"
    child = subprocess.Popen(["bash", "-c", script], pass_fds=[write_fd])
    os.close(write_fd)
    start = time.monotonic()
    with open(read_fd, "rb", buffering=0) as events:
        followed = _Followed(tmp_path, lambda node, facts: None)
        lines = list(_lines(child, events, lambda: None, followed))
    assert lines == [b"one"]
    assert time.monotonic() - start < 20
    assert child.wait() == 3
