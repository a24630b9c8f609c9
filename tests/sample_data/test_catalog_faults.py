"""Killed at every step, or made by several processes at once: never a part to be seen.

Each child process really dies by SIGKILL, so no ``finally`` runs in it.
"""

from __future__ import annotations

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

target, seed, owner, function, call = sys.argv[1:]
toys = DataSet("toys", 1, "toys", False, (Split("train", 8, 4),),
               lambda: [bytes([number]) for number in range(8)])
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

patch({"tfrecord": catalog.tfrecord, "Manifest": catalog.Manifest,
       "Path": pathlib.Path, "shutil": catalog.shutil}[owner], function)
catalog.make("toys", target, seed=int(seed))
"""
NEVER = ("shutil", "rmtree", "99")


def start(target, seed, step):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(target), str(seed), *step], cwd=ROOT
    )


def make(target, seed, step=NEVER):
    return start(target, seed, step).wait()


def entries(target):
    return sorted(path.name for path in target.parent.iterdir())


@pytest.mark.parametrize(
    ("step", "left"),
    [
        (("tfrecord", "write", "1"), "old"),
        (("tfrecord", "write", "3"), "old"),
        (("Manifest", "save", "1"), "old"),
        (("Path", "rename", "1"), "old"),
        (("Path", "rename", "2"), "nothing"),  # Between the two renames.
        (("shutil", "rmtree", "3"), "new"),  # Before the old one is removed.
    ],
)
def test_killed_while_replacing(tmp_path, step, left):
    target = tmp_path / "toys"
    assert make(target, 1) == 0

    assert make(target, 2, step) == -signal.SIGKILL
    if left == "nothing":
        assert not target.exists()
    else:
        assert catalog.verify(target).seed == {"old": 1, "new": 2}[left]

    assert make(target, 3) == 0
    assert catalog.verify(target).seed == 3
    assert entries(target) == [".toys.lock", "toys"]


def test_killed_while_making_it_for_the_first_time(tmp_path):
    target = tmp_path / "toys"

    assert make(target, 1, ("Path", "rename", "1")) == -signal.SIGKILL
    assert not target.exists()
    assert make(target, 1) == 0
    catalog.verify(target)
    assert entries(target) == [".toys.lock", "toys"]


def test_several_processes_at_once(tmp_path):
    target = tmp_path / "toys"
    children = [start(target, 1, NEVER) for _ in range(4)]

    assert [child.wait() for child in children] == [0, 0, 0, 0]
    catalog.verify(target)
    assert entries(target) == [".toys.lock", "toys"]
