"""Ingestion that is stopped, killed, or out of disk space while its workers run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sluice.project import own_root
from sluice.tfrecords import tfrecord
from sluice.tfrecords.frame_encoding import frame
from tests.kit.wait import is_gone, wait_for

pytestmark = pytest.mark.fault

FILES = 4
RECORDS = 20_000
# As in a node's process: SIGTERM stops it, and images are checked.
NODE = """
import os, sys
from components.tfrecord_gen.ingest import ingest
from components.tfrecord_gen.settings import ImageCheck, Ingestion
from components.tfrecord_gen.input_files import SourceFile, Window
from sluice import interrupt

interrupt.listen()
out, *paths = sys.argv[1:]
files = tuple(
    SourceFile(path, "train", size_bytes=os.path.getsize(path)) for path in paths
)
folders = {"train": f"{out}/Split-train"}
images = (ImageCheck(feature="image"),)
settings = Ingestion(base="", patterns={"train": "*"}, images=images)
window = Window("", settings.patterns, files)
ingest(settings, window, folders, f"{out}/quarantine", 2)
"""
ON_A_SMALL_DISK = """
mount -t tmpfs -o size=4m none "$1"
"$2" -c "$3" "$1" "${@:4}"
code=$?
find "$1" -name '*-of-*' -o -name .parts-* >&2
exit $code
"""


@pytest.fixture(scope="module")
def shards(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[str]]:
    """Files that take two workers some seconds."""
    source = next((project / "data" / "digits").glob("train-00000-*"))
    data = b"".join(map(frame, tfrecord.read(source)))
    count = sum(1 for _ in tfrecord.read(source))
    folder = tmp_path_factory.mktemp("shards")
    paths = [folder / f"train-{index}" for index in range(FILES)]
    for path in paths:
        path.write_bytes(data * (RECORDS // count + 1))
    yield [str(path) for path in paths]


class Node:
    """A process that ingests with two workers, both busy."""

    def __init__(self, out: Path, shards: list[str]) -> None:
        self.out = out
        self.process = subprocess.Popen(
            [sys.executable, "-c", NODE, str(out), *shards],
            cwd=own_root(),
            stderr=subprocess.PIPE,
            text=True,
        )
        parts = out / "Split-train"
        wait_for(
            lambda: parts.exists() and len(list(parts.glob(".part-*"))) > 1, "workers"
        )
        self.workers = [x.pid for x in psutil.Process(self.process.pid).children(True)]
        assert len(self.workers) == 2

    def end(self) -> str:
        """Waits for its end and returns its standard error."""
        return self.process.communicate(timeout=20)[1]


@pytest.fixture
def node(tmp_path: Path, shards: list[str]) -> Iterator[Node]:
    started = Node(tmp_path, shards)
    yield started
    started.process.kill()
    started.process.communicate()


def test_a_node_that_is_asked_to_stop_ends_its_workers(node):
    node.process.send_signal(signal.SIGTERM)

    said = node.end()

    assert said.rstrip().endswith("Interrupted: the node was asked to stop")
    assert said.count("Traceback") == 1, "the workers have something to say"
    assert all(map(is_gone, node.workers))


def test_a_worker_that_is_killed_fails_the_node(node):
    os.kill(node.workers[0], signal.SIGKILL)

    said = node.end()

    assert node.process.returncode == 1
    assert "NodeError: a worker process died" in said
    assert all(map(is_gone, node.workers))


def test_workers_of_a_node_that_is_killed_end(node):
    node.process.kill()
    node.process.wait()

    wait_for(lambda: all(map(is_gone, node.workers)), "the end of the workers")
    parts = {path.name for path in (node.out / "Split-train").iterdir()}
    assert len(parts) < FILES, "they have gone on to the end"


def test_a_full_disk(tmp_path, shards, mounting):
    command = [*mounting, "bash", "-c", ON_A_SMALL_DISK, "-", str(tmp_path)]
    done = subprocess.run(
        [*command, sys.executable, NODE, *shards],
        cwd=own_root(),
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("No space left on device")
    assert "resource_tracker" not in done.stderr
