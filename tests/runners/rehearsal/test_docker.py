"""Tasks in containers: how Docker is called, and that no container stays behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runners.rehearsal.container import Containers, Ended
from tests.runners.rehearsal.conftest import Rehearsal
from tests.runners.rehearsal.fake_docker import FakeDocker

pytestmark = pytest.mark.unit


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    """A fake ``docker`` on the search path."""
    return FakeDocker(tmp_path / "docker", monkeypatch)


@pytest.fixture
def containers(rehearsal: Rehearsal) -> Containers:
    """Containers of an image."""
    emulator = {"CURL_CA_BUNDLE": "/tmp/e/ca.pem", "STORAGE_EMULATOR_HOST": "http://x"}
    return replace(rehearsal.containers, image="image:1", emulator=emulator)


def _run(
    containers: Containers,
    log: Path,
    code: str,
    stopping: Callable[[], str | None] = lambda: None,
) -> Ended:
    command = ["python", "-c", code]
    return containers.run(command, {"A": "b c"}, log, "Make", stopping)


def test_container_gets_the_emulator_and_the_user(
    docker: FakeDocker, containers: Containers, tmp_path: Path
) -> None:
    """Found: the user of the image may not read the emulator's files."""
    code = "import os; print(sorted(os.environ)); print(os.environ['A'])"
    ended = _run(containers, tmp_path / "log", code)
    assert ended.status == 0, (tmp_path / "log").read_text()
    (call,) = docker.calls()
    assert call == [
        *("run", "--rm", "--init", "--network=host", f"--name={docker.name(call)}"),
        *(f"--user={os.getuid()}:{os.getgid()}", "-e", "HOME=/tmp"),
        *("-e", "CURL_CA_BUNDLE=/tmp/e/ca.pem"),
        *("-e", "STORAGE_EMULATOR_HOST=http://x", "-e", "A=b c"),
        *("-v", "/tmp/e:/tmp/e:ro", "--entrypoint", "python", "image:1", "-c", code),
    ]
    variables, value = (tmp_path / "log").read_text().splitlines()[1:]
    assert "STORAGE_EMULATOR_HOST" in variables and "HOME" in variables
    assert "SLUICE" not in variables and value == "b c"


def test_status_of_the_container_is_that_of_the_task(
    docker: FakeDocker, containers: Containers, tmp_path: Path
) -> None:
    assert _run(containers, tmp_path / "log", "raise SystemExit(3)").status == 3


def test_missing_docker_is_a_failed_task(
    containers: Containers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _run(containers, tmp_path / "log", "").status == 127
    assert "docker: No such file" in (tmp_path / "log").read_text()


def test_stopped_task_asks_the_client_which_asks_the_container(
    docker: FakeDocker, containers: Containers, tmp_path: Path
) -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        f"open({str(tmp_path / 'begun')!r}, 'w').close()\n"
        "time.sleep(60)"
    )
    asked = lambda: "term" if (tmp_path / "begun").exists() else None  # noqa: E731
    assert _run(containers, tmp_path / "log", code, asked).status == 5
    assert [call[0] for call in docker.calls()] == ["run"]


def test_killed_container_does_not_outlive_its_client(
    docker: FakeDocker, containers: Containers, tmp_path: Path
) -> None:
    """Found: only the client of Docker was killed; its container went on."""
    code = "import time; time.sleep(60)"
    ended = _run(
        containers, tmp_path / "log", code, lambda: "kill" if docker.calls() else None
    )
    assert ended.status is None
    begun, killed = docker.calls()
    assert killed == ["kill", docker.name(begun)]


@pytest.mark.fault
def test_container_does_not_outlive_a_rehearsal_that_is_killed(
    docker: FakeDocker, containers: Containers, tmp_path: Path
) -> None:
    """Found: nobody was left who knew the container's name."""
    child = os.fork()
    if child == 0:
        _run(containers, tmp_path / "log", "import time; time.sleep(60)")
        os._exit(0)
    _wait_for_calls(docker, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    begun, killed = _wait_for_calls(docker, 2)
    assert killed == ["kill", docker.name(begun)]


def _wait_for_calls(docker: FakeDocker, number: int) -> list[list[str]]:
    end = time.monotonic() + 30
    while len(docker.calls()) < number:
        assert time.monotonic() < end, docker.calls()
        time.sleep(0.02)
    return docker.calls()
