"""The setup installs the environment once, completely or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.fault

MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
TFX = {"3.10": "1.16", "3.12": "1.21"}[MINOR]
VENV = {"1.16": ".venv", "1.21": ".venv-1.21"}[TFX]
HANGING_UV = """#!/bin/sh
case $1 in
    --version) exit 0 ;;
    python) exit 2 ;;
esac
echo "$*" >>"$NOTES"
sleep 30
"""


def succeeded(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == 0 and done.stdout == f"{VENV}\n"


def wait_for(condition) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_second_setup_installs_nothing(ready_machine):
    assert succeeded(ready_machine.set_up())
    installs = ready_machine.installs()
    for name in (f"python{MINOR}", "uv", "g++"):
        (ready_machine.bin / name).rename(ready_machine.home / name)
    python = ready_machine.project / VENV / "bin" / "python"
    python.unlink()
    python.symlink_to(os.path.realpath(sys.executable))

    second = ready_machine.set_up(TFX)
    assert succeeded(second)
    assert second.stderr == ""
    assert ready_machine.installs() == installs


def test_only_hash_checked_locks_are_installed(ready_machine):
    assert succeeded(ready_machine.set_up())
    first, locked, project = ready_machine.installs()
    assert f"--require-hashes --requirement {VENV}/setuptools.txt" in first
    assert f"--require-hashes --requirement requirements/tfx-{TFX}.txt" in locked
    assert f"--requirement requirements/dev-{TFX}.txt --no-build-isolation" in locked
    assert "--editable . --no-deps --no-build-isolation --offline" in project


def test_uv_uses_the_index_of_pip(ready_machine):
    base = os.path.realpath(sys.executable)
    if subprocess.run([base, "-m", "pip", "--version"], capture_output=True).returncode:
        pytest.skip("this Python has no pip to ask")
    url = "https://packages.example/simple"
    assert succeeded(ready_machine.set_up(PIP_INDEX_URL=url))
    assert all(call.endswith(f"index={url}") for call in ready_machine.installs())


@pytest.mark.parametrize(
    "changed",
    [f"requirements/tfx-{TFX}.txt", f"requirements/dev-{TFX}.txt", "setup.py"],
)
def test_a_changed_lock_is_installed_again(ready_machine, changed):
    assert succeeded(ready_machine.set_up())
    old = ready_machine.project / VENV / "old"
    old.touch()
    with open(ready_machine.project / changed, "a") as file:
        file.write("# changed\n")
    assert succeeded(ready_machine.set_up())
    assert len(ready_machine.installs()) == 6
    assert not old.exists()


def test_a_failed_install_leaves_nothing(ready_machine):
    ready_machine.tool(
        "uv",
        '#!/bin/sh\n[ "$1" = --version ] && exit 0\n'
        'echo "error: the index is not reachable" >&2\nexit 1\n',
    )
    done = ready_machine.set_up()
    assert done.returncode == 2
    assert done.stdout == ""
    assert "error: the index is not reachable" in done.stderr
    assert f"the partial {VENV} was removed" in done.stderr
    assert not (ready_machine.project / VENV).exists()


def test_the_environment_of_a_killed_setup_is_replaced(ready_machine):
    noting = (ready_machine.bin / "uv").read_text()
    ready_machine.tool("uv", HANGING_UV)
    killed = start(ready_machine)
    wait_for(ready_machine.installs)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    half_made = ready_machine.project / VENV / "half-made"
    half_made.touch()

    ready_machine.tool("uv", noting)
    assert succeeded(ready_machine.set_up())
    assert not half_made.exists()


def test_two_simultaneous_setups_install_once(ready_machine):
    slow = (ready_machine.bin / "uv").read_text() + "sleep 0.3\n"
    ready_machine.tool("uv", slow)
    both = [start(ready_machine), start(ready_machine)]
    outputs = [process.communicate(timeout=30) for process in both]
    assert [out for out, _ in outputs] == [f"{VENV}\n"] * 2
    assert "".join(err for _, err in outputs).count("waiting for it") == 1
    assert len(ready_machine.installs()) == 3


def start(machine) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [machine.project / "setup" / "environment.sh"],
        env=machine.environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
