"""A run lock whose owner was killed, with and without a surviving child process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sluice.project import own_root

pytestmark = pytest.mark.fault

OWNER = """
import os, sys, time
from pathlib import Path
from sluice.workspace import Workspace

with Workspace(Path(sys.argv[1])).exclusive("sluice run digits") as lock:
    orphan = Path(sys.argv[2])
    os.set_inheritable(lock.descriptor, True)
    if orphan.exists() and os.fork() == 0:
        while orphan.exists():
            time.sleep(0.02)
        os._exit(0)
    print("locked", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("leaves_an_orphan", [False, True])
def test_the_lock_of_a_dead_owner_is_taken_over(
    served: Any, tmp_path: Path, leaves_an_orphan: bool
) -> None:
    """The lock is free once the last of the owner's processes has ended."""
    orphan = tmp_path / "orphan"
    if leaves_an_orphan:
        orphan.touch()
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(served.workspace.root), str(orphan)],
        cwd=own_root(),
        stdout=subprocess.PIPE,
    )
    with owner:
        assert owner.stdout is not None and owner.stdout.readline() == b"locked\n"
        refused = served.here("run", "digits")
        assert refused.code == 6
        assert f"process {owner.pid} on {os.uname().nodename}, since 20" in refused.err
        owner.send_signal(signal.SIGKILL)
    if leaves_an_orphan:
        waiting = served.start("run", "digits", "--json", "--wait")
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(2)
        orphan.unlink()
        outcome = served.end(waiting)
    else:
        outcome = served.here("run", "digits", "--json")
    assert outcome.code == 0, outcome.err
    assert set(outcome.states.values()) <= {"cached", "ran"}
    (note,) = served.record().notes
    assert note.startswith(
        f"took over the lock of a dead owner: process {owner.pid} on "
    )
    assert note.endswith(": sluice run digits")
    served.assert_sound(versions=[1])
