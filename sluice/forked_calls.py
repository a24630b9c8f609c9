"""Calls a function for many items, in processes forked from this one."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any, TypeVar

from sluice.errors import NodeError
from sluice.patches import tensorflow
from sluice.process_tree import die_with

FEWER_WORKERS = "if memory ran out, set beam.workers to fewer"
_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")
_job: tuple[Callable[[Any], Any], Sequence[Any]]


def run_forked(
    function: Callable[[_Item], _Answer],
    items: Sequence[_Item],
    workers: int,
    on_done: Callable[[], object] = lambda: None,
) -> list[_Answer]:
    """Returns the function's answers in the order of the items.

    Forked, so that the function, its imports and the items are there already. The
    caller must not have started threads; with one worker, or where TensorFlow has
    started, nothing is forked. ``on_done`` is called after each item.

    Raises:
      NodeError: a worker died.
      Exception: as the function raised it.
    """
    workers = min(workers, len(items))
    if workers <= 1 or tensorflow.has_started():
        return [_called(function, item, on_done) for item in items]
    context = multiprocessing.get_context("fork")
    begin = partial(_begin, os.getpid(), function, items)
    try:
        with ProcessPoolExecutor(workers, context, begin) as pool:
            answers = [pool.submit(_answer, index) for index in range(len(items))]
            try:
                for answer in as_completed(answers):
                    answer.result()
                    on_done()
            except BaseException:
                # The pool would wait for what its workers are doing.
                for worker in multiprocessing.active_children():
                    worker.terminate()
                raise
            return [answer.result() for answer in answers]
    except BrokenProcessPool as error:
        raise NodeError("a worker process died", hint=FEWER_WORKERS) from error


def _called(
    function: Callable[[_Item], _Answer], item: _Item, on_done: Callable[[], object]
) -> _Answer:
    answer = function(item)
    on_done()
    return answer


def _begin(parent: int, function: Callable[[Any], Any], items: Sequence[Any]) -> None:
    global _job
    _job = function, items
    die_with(parent)
    # The parent's handler raises, and what is raised can be lost; see sluice.interrupt.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _answer(index: int) -> Any:
    function, items = _job
    return function(items[index])
