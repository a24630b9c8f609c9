"""Garbage collection that is killed, or runs beside a run, or may not delete."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.errors import ExitCode, WorkspaceError
from sluice.project import own_root
from sluice.storage import digest

pytestmark = pytest.mark.unit


@pytest.mark.fault
def test_nothing_is_deleted_if_the_metadata_is_damaged(past):
    for _ in range(2):
        past.run(blessed=False)
    del past.store
    past.workspace.metadata_db.write_bytes(b"not a database" * 1000)
    before = digest.of_tree(past.workspace.artifacts)
    with pytest.raises(WorkspaceError, match="file is not a database") as raised:
        past.collect()
    assert str(past.workspace.metadata_db) in str(raised.value)
    assert digest.of_tree(past.workspace.artifacts) == before


_CHILD = """
import errno, os, signal, sys
from pathlib import Path
from runners.operations.collect_garbage import collect_garbage
from sluice.errors import SluiceError
from sluice.workspace import Workspace

event, count, action = sys.argv[2], int(sys.argv[3]), sys.argv[4]

def at(name, arguments):
    global count
    if name == event:
        count -= 1
        if count == 0 and action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if count == 0:
            raise PermissionError(errno.EACCES, "Permission denied", str(arguments[0]))

sys.addaudithook(at)
try:
    collect_garbage(Workspace(Path(sys.argv[1])), [], keep=1)
except SluiceError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def _in_a_child(past, event, count, action):
    """Collects in a process that is stopped, or hindered, at its nth deletion."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, past.workspace.root, event, str(count), action],
        cwd=own_root(),
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout


@pytest.mark.fault
@pytest.mark.parametrize(
    ("event", "count"),
    [("shutil.rmtree", 1), ("os.remove", 2), ("shutil.rmtree", 5), ("os.rmdir", 9)],
)
def test_the_next_collection_finishes_a_killed_one(past, event, count):
    for _ in range(3):
        last = past.run(blessed=False, data=True)
    expected = past.collect(dry_run=True)
    code, _ = _in_a_child(past, event, count, "kill")
    assert code == -signal.SIGKILL
    graph = past.graph()
    for artifact in graph.artifacts.values():
        gone = artifact.id in expected.mark
        assert artifact.state == ("deleted" if gone else "live")
    remaining = [
        item for item in expected.items["artifacts"] if Path(item.name).exists()
    ]
    assert remaining, "the kill came too late to test anything"
    again = past.collect()
    assert {item.name for item in remaining} <= {
        item.name for item in again.items["artifacts"]
    }
    assert not any(Path(item.name).exists() for item in expected.items["artifacts"])
    for kind in ("runs", "inputs"):
        paths = [path for item in expected.items[kind] for path in item.paths]
        assert not any(path.exists() for path in paths)
    assert past.made_by(last, "Trainer.model").is_dir()
    assert past.collect().freed_bytes == 0


@pytest.mark.fault
def test_a_file_that_cannot_be_deleted_is_named_and_deleted_later(past):
    for _ in range(3):
        past.run(blessed=False, data=True)
    expected = past.collect(dry_run=True)
    code, text = _in_a_child(past, "shutil.rmtree", 2, "refuse")
    assert code == ExitCode.USAGE
    remaining = [
        item for item in expected.items["artifacts"] if Path(item.name).exists()
    ]
    assert f"where:    {remaining[0].name}" in text and "Permission denied" in text
    assert past.collect().items["artifacts"] == tuple(remaining)
