"""The setup installs the environment once, from the lock files, or says what failed.

The script is the real one, in a copy of the project's files; ``uv`` only notes its
arguments.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.wait import wait_for

pytestmark = pytest.mark.fault

ROOT = Path(__file__).parents[2]
NOTING_UV = """#!/bin/sh
case "$1 $NO_PYTHON" in
    --version*) exit 0 ;;
    "venv 3.12") case "$*" in *3.12*) echo "no Python 3.12" >&2; exit 2 ;; esac ;;
esac
echo "$* index=${UV_DEFAULT_INDEX:-}" >>"$NOTES"
if [ "$1" = venv ]; then mkdir -p .venv/bin; ln -s "$BASE" .venv/bin/python; fi
sleep "${SLOW:-0}"
exit "${FAILS:-0}"
"""


@pytest.fixture
def machine(tmp_path):
    """Returns a function that starts the setup there, and the file of notes."""
    project, tools = tmp_path / "project", tmp_path / "bin"
    for name in ("setup", "requirements"):
        shutil.copytree(ROOT / name, project / name)
    shutil.copy(ROOT / "setup.py", project)
    tools.mkdir()
    _script(tools / "uv", NOTING_UV)
    _script(tools / "g++", "#!/bin/sh\n")
    _script(tools / "getconf", "#!/bin/sh\necho glibc ${GLIBC:-2.36}\n")
    return Machine(project, tools, tmp_path / "notes")


class Machine:
    def __init__(self, project, tools, notes):
        self.project, self.tools, self.notes = project, tools, notes

    def start(self, *args, **variables):
        environ = {
            "PATH": f"{self.tools}:/usr/bin:/bin",
            "BASE": os.path.realpath(sys.executable),
            "NOTES": str(self.notes),
        }
        return subprocess.Popen(
            [self.project / "setup" / "environment.sh", *args],
            env=environ | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def set_up(self, *args, **variables):
        process = self.start(*args, **variables)
        out, error = process.communicate(timeout=60)
        return process.returncode, out, error

    def calls(self):
        return self.notes.read_text().splitlines() if self.notes.exists() else []


def _script(path, text):
    path.write_text(text)
    path.chmod(0o755)


def test_only_hash_checked_locks_are_installed_and_only_once(machine):
    index = "https://packages.example/simple"
    assert machine.set_up(UV_DEFAULT_INDEX=index)[:2] == (0, ".venv\n")
    venv, first, locked, project = calls = machine.calls()
    assert venv.startswith("venv --quiet --python 3.10 .venv")
    assert "install --quiet --python .venv/bin/python --require-hashes" in first
    assert "sync --quiet --python .venv/bin/python --require-hashes" in locked
    assert "requirements/tfx-1.16.txt requirements/dev-1.16.txt" in locked
    assert "--editable . --no-deps --no-build-isolation --offline" in project
    assert all(call.endswith(f"index={index}") for call in calls)

    (machine.tools / "uv").unlink()
    assert machine.set_up() == (0, ".venv\n", "")


def test_a_changed_lock_is_installed_into_the_environment(machine):
    machine.set_up()
    with open(machine.project / "requirements" / "dev-1.16.txt", "a") as file:
        file.write("# changed\n")
    assert machine.set_up()[0] == 0
    assert [call.split()[0] for call in machine.calls()[4:]] == ["pip"] * 3


@pytest.mark.parametrize(
    ("variables", "python"),
    [
        ({}, "3.10"),
        ({"GLIBC": "2.41"}, "3.12"),
        ({"GLIBC": "2.41", "NO_PYTHON": "3.12"}, "3.10"),
    ],
)
def test_the_newest_tfx_that_the_machine_can_run(machine, variables, python):
    assert machine.set_up(**variables)[0] == 0
    assert f"--python {python} " in machine.calls()[0]
    kept = machine.set_up(GLIBC="2.41")
    assert kept == (0, ".venv\n", ""), "what is installed stays"


def test_a_failed_install_is_begun_anew(machine):
    code, out, _ = machine.set_up(FAILS="1")
    assert (code, out) == (2, "")
    begun = len(machine.calls())
    assert machine.set_up()[0] == 0
    assert machine.calls()[begun].startswith("venv ")


def test_a_killed_install_is_begun_anew(machine):
    killed = machine.start(SLOW="30")
    wait_for(machine.calls)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert machine.set_up()[0] == 0
    assert [call.split()[0] for call in machine.calls()].count("venv") == 2


def test_two_setups_at_the_same_time_install_once(machine):
    both = [machine.start(SLOW="0.3") for _ in range(2)]
    assert [process.communicate(timeout=60)[0] for process in both] == [".venv\n"] * 2
    assert len(machine.calls()) == 4


@pytest.mark.parametrize(
    ("tool", "text", "says"),
    [
        ("uname", "#!/bin/sh\necho Darwin arm64\n", "wheels for Linux on x86-64 only"),
        ("c++", "", "no C++ compiler for pyfarmhash: apt-get install g++"),
    ],
)
def test_what_the_machine_lacks(machine, tool, text, says):
    _script(machine.tools / tool, text)
    code, out, error = machine.set_up(**({} if text else {"CXX": "no-such-compiler"}))
    assert (code, out) == (2, "")
    assert says in error
    assert machine.calls() == []
