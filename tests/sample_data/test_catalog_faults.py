"""Sample data written by killed or concurrent processes: readers never see a part.

Child processes are killed by SIGKILL, so no ``finally`` runs in them.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sample_data import catalog

pytestmark = pytest.mark.fault

ROOT = Path(catalog.__file__).parents[1]

# Makes the toys, and dies at the Nth call of the patched function.
CHILD = """
import os, pathlib, signal, sys
from sample_data import catalog
from sample_data.data_set import DataSet, Split
from sluice.tfrecords import tfrecord

target, seed, owner, function, call = sys.argv[1:]
toys = DataSet("toys", 1, "toys", "none", False, (Split("train", 8, 4),),
               records=lambda: [bytes([number]) for number in range(8)])
catalog._DATA_SETS["toys"] = toys
calls = 0

def patch(owner, function):
    original = getattr(owner, function)
    def dying(*args, **kwargs):
        global calls
        calls += 1
        if calls == int(call):
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **kwargs)
    setattr(owner, function, dying)

patch({"tfrecord": tfrecord, "Manifest": catalog.Manifest,
       "Path": pathlib.Path, "shutil": catalog.shutil}[owner], function)
catalog.make("toys", target, seed=int(seed))
"""


def start(target, seed, step=("shutil", "rmtree", "99")):
    arguments = [str(target), str(seed), *step]
    return subprocess.Popen([sys.executable, "-c", CHILD, *arguments], cwd=ROOT)


@pytest.mark.parametrize(
    ("step", "left"),
    [
        (("tfrecord", "write", "3"), 1),
        (("Manifest", "save", "1"), 1),
        (("Path", "rename", "2"), None),  # Between the two renames.
        (("shutil", "rmtree", "3"), 2),  # Before the old one is removed.
    ],
)
def test_killed_while_replacing(tmp_path, step, left):
    target = tmp_path / "toys"
    assert start(target, 1).wait() == 0
    assert start(target, 2, step).wait() == -signal.SIGKILL
    if left is None:
        assert not target.exists()
    else:
        assert catalog.verify(target).seed == left
    # Several at once.
    children = [start(target, 3) for _ in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]
    assert catalog.verify(target).seed == 3
    assert {path.name for path in tmp_path.iterdir()} == {".toys.lock", "toys"}
