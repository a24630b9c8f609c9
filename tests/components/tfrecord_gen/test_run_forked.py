"""Worker processes: their answers, their errors, and their deaths."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from components.tfrecord_gen.ingest import run_forked
from sluice import interrupt
from sluice.errors import DataError, NodeError

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "error", [DataError("bad", where="a", hint="do this"), OSError(28, "full", "out")]
)
def test_an_error_comes_as_it_is(error):
    def work(value):
        raise error

    with pytest.raises(type(error)) as caught:
        run_forked(work, range(100), 2)

    assert str(caught.value) == str(error)


def test_a_worker_is_killed_though_its_parent_handles_signals():
    def die(value):
        if value == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(30)

    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    started = time.perf_counter()
    try:
        interrupt.listen()  # As in a node, whose handler of SIGTERM raises.
        with pytest.raises(NodeError, match="worker process died"):
            run_forked(die, [1, 0], 2)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

    assert time.perf_counter() - started < 10


_ORPHANS = """
import os, sys, time
from components.tfrecord_gen.ingest import run_forked

def work(value):
    with open(sys.argv[1], "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(0.05)

run_forked(work, range(1000), 2)
"""


def test_workers_end_when_their_parent_is_killed(tmp_path, wait_for, is_gone):
    log = tmp_path / "log"
    with subprocess.Popen([sys.executable, "-c", _ORPHANS, log]) as parent:
        wait_for(lambda: log.exists() and "\n" in log.read_text(), "workers")
        parent.kill()
    workers = {int(line) for line in log.read_text().splitlines()}

    wait_for(lambda: all(map(is_gone, workers)), "the end of the workers")
