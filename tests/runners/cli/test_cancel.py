"""``cancel``: sends SIGINT to the process of the run in progress."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from runners.operations.cancel import cancel
from sluice.errors import UsageError
from sluice.project import own_root
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace

pytestmark = pytest.mark.unit

RUNS = """
import sys, time
from pathlib import Path
from sluice.workspace import Workspace

with Workspace(Path(sys.argv[1])).exclusive("sluice run digits"):
    print("locked", flush=True)
    time.sleep(20)
"""


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    (tmp_path / "configs").mkdir()
    monkeypatch.chdir(tmp_path)
    made = Workspace(tmp_path / "workspace" / "gone")
    made.prepare()
    return made


def test_nothing_to_cancel(workspace):
    with pytest.raises(UsageError, match="no run of gone is in progress"):
        cancel("gone")


@pytest.mark.parametrize("run_id", [None, "20260101T000000Z"])
def test_the_process_of_the_run_gets_a_sigint(workspace, run_id):
    """Found: with --run a run of this machine was looked for in a service."""
    run_dir = workspace.run_dir("20260101T000000Z-ab12")
    run_dir.mkdir()
    RunRecord(run_dir.name, "gone").save(run_dir)
    command = [sys.executable, "-c", RUNS, str(workspace.root)]
    with subprocess.Popen(
        command, cwd=own_root(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout and process.stdout.readline() == b"locked\n"
        with pytest.raises(UsageError, match="no run of gone is in progress"):
            cancel("gone", "2025")
        done = cancel("gone", run_id)
        assert (done["pid"], done["command"]) == (process.pid, "sluice run digits")
        assert process.wait(30) == -signal.SIGINT
    with pytest.raises(UsageError, match="no run of gone"):
        cancel("gone")
