"""``cancel``: sends SIGINT to the process of the run in progress."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runners.operations.cancel import CancelRequest, cancel
from sluice.errors import UsageError
from sluice.project import own_root
from sluice.workspace import Workspace

pytestmark = pytest.mark.unit

RUNS = """
import sys, time
from pathlib import Path
from sluice.workspace import Workspace

with Workspace(Path(sys.argv[1])).exclusive("sluice run digits"):
    print("locked", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    (tmp_path / "configs").mkdir()
    monkeypatch.chdir(tmp_path)
    made = Workspace(tmp_path / "workspace" / "gone")
    made.prepare()
    return made


def test_nothing_to_cancel(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="no run of gone is in progress"):
        cancel(CancelRequest(name="gone"))


def test_the_process_of_the_run_gets_a_sigint(workspace: Workspace) -> None:
    command = [sys.executable, "-c", RUNS, str(workspace.root)]
    with subprocess.Popen(
        command, cwd=own_root(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout and process.stdout.readline() == b"locked\n"
        done = cancel(CancelRequest(name="gone"))
        assert (done.pids, done.ended) == ((process.pid,), False)
        assert done.command == "sluice run digits"
        assert process.wait(30) == -signal.SIGINT
    with pytest.raises(UsageError, match="no run of gone"):
        cancel(CancelRequest(name="gone"))
