"""Sample data written by killed or concurrent processes: readers never see a part.

Child processes are killed by SIGKILL, so no ``finally`` runs in them.
"""

from __future__ import annotations

import signal
import struct
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


# Makes MNIST of a folder with two processes, one of which waits in its first record.
PARALLEL = """
import pathlib, sys, time
from sample_data import catalog, image_array
from sample_data.data_set import Source

target, source, moment = sys.argv[1:]
encode = image_array.encode_png

def waiting(pixels):
    pathlib.Path(moment).touch()
    time.sleep(1)
    return encode(pixels)

if moment != "none":
    image_array.encode_png = waiting
catalog.make("mnist", target, source=Source(pathlib.Path(source)), workers=2)
"""


def write_mnist(folder):
    folder.mkdir()
    for prefix, count in (("train", 24), ("t10k", 4)):
        header = struct.pack(">HBBI", 0, 8, 1, count)
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(header + bytes(count))
        header = struct.pack(">HBBIII", 0, 8, 3, count, 28, 28)
        images = header + bytes(count * 28 * 28)
        (folder / f"{prefix}-images-idx3-ubyte").write_bytes(images)
    return folder


def test_killed_while_processes_write_shards(tmp_path, wait_for):
    target, source = tmp_path / "mnist", write_mnist(tmp_path / "source")

    def start_parallel(moment):
        arguments = [str(target), str(source), str(moment)]
        return subprocess.Popen([sys.executable, "-c", PARALLEL, *arguments], cwd=ROOT)

    assert start_parallel("none").wait() == 0
    before = catalog.verify(target)
    (source / "train-labels-idx1-ubyte").write_bytes(
        struct.pack(">HBBI", 0, 8, 1, 24) + b"\1" * 24
    )

    child = start_parallel(tmp_path / "moment")
    wait_for((tmp_path / "moment").exists, "a process that writes a shard")
    child.kill()
    assert child.wait() == -signal.SIGKILL
    assert catalog.verify(target) == before

    # It waits for the processes that are left, which hold the lock.
    assert start_parallel("none").wait() == 0
    assert catalog.verify(target).source_sha256 != before.source_sha256
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".mnist.lock",
        "mnist",
        "moment",
        "source",
    ]


def test_several_processes_at_once(tmp_path):
    target = tmp_path / "toys"
    children = [start(target, 1, NEVER) for _ in range(4)]

    assert [child.wait() for child in children] == [0, 0, 0, 0]
    catalog.verify(target)
    assert entries(target) == [".toys.lock", "toys"]
