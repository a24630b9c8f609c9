"""Worker processes: their answers, their errors, and their deaths."""

from __future__ import annotations

import os
import signal
import time

import pytest

from components.tfrecord_gen.taking.run_forked import run_forked
from sluice.errors import DataError, NodeError

pytestmark = pytest.mark.unit


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
