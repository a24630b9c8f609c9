"""Worker processes: their answers, their errors, and their deaths."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time

import pytest

from sluice import interrupt
from sluice import run_forked as run_forked_module
from sluice.errors import DataError, NodeError
from sluice.interrupt import Interrupted
from sluice.run_forked import run_forked

pytestmark = pytest.mark.unit

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def twice(value):
    return value * 2


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_answers_come_in_order(workers):
    def slow_first(value):
        time.sleep(0.05 * (value == 0))
        return value * 2

    assert run_forked(slow_first, range(9), workers) == list(range(0, 18, 2))


def test_nothing_to_do():
    assert run_forked(twice, [], 2) == []


def test_answers_larger_than_a_pipe():
    sizes = run_forked(lambda size: b"x" * size, [5_000_000] * 4, 2)

    assert [len(data) for data in sizes] == [5_000_000] * 4


def test_an_error_of_ours_comes_as_it_is():
    def fail(value):
        raise DataError("bad", where=value, hint="do this")

    with pytest.raises(DataError, match="try: +do this"):
        run_forked(fail, [1, 2, 3], 2)


def test_a_full_disk_comes_as_it_is():
    def fail(value):
        raise OSError(28, "No space left on device", "out")

    with pytest.raises(OSError, match="No space left") as caught:
        run_forked(fail, [1, 2], 2)

    assert caught.value.errno == 28


def test_another_error_is_explained():
    def fail(value):
        return value["no such key"]

    with pytest.raises(NodeError, match="TypeError"):
        run_forked(fail, [1, 2], 2)


def test_a_worker_that_is_killed():
    def die(value):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(NodeError, match=r"(?s)worker process died.*exit code -9"):
        run_forked(die, [1, 2], 2)


def test_an_error_ends_the_other_workers(tmp_path):
    def work(value):
        if value == 0:
            raise DataError("bad")
        time.sleep(30)

    started = time.perf_counter()
    with pytest.raises(DataError):
        run_forked(work, [1, 0], 2)

    assert time.perf_counter() - started < 10


def test_a_worker_that_is_killed_while_it_answers(monkeypatch):
    def begin_to_answer(*arguments):
        answers = arguments[3]
        os.write(answers.fileno(), struct.pack("!i", 1000) + b"part")
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(run_forked_module, "_work", begin_to_answer)
    with pytest.raises(NodeError, match=r"(?s)worker process died.*exit code -9"):
        run_forked(twice, [1, 2], 2)


def test_a_worker_ends_though_its_parent_s_handler_does_not(tmp_path):
    asleep = tmp_path / "asleep"

    def work(value):
        if value == 0:
            while not asleep.exists():
                time.sleep(0.01)
            raise DataError("bad")
        try:
            asleep.touch()
            time.sleep(20)
        except Interrupted:  # As Python drops it in a destructor.
            time.sleep(20)

    before = {number: signal.getsignal(number) for number in SIGNALS}
    started = time.perf_counter()
    try:
        interrupt.listen()
        with pytest.raises(DataError):
            run_forked(work, [1, 0], 2)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

    assert time.perf_counter() - started < 10


_ORPHANS = """
import os, sys, time
from sluice.run_forked import run_forked

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
