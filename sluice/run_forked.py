"""Maps a function over items in forked worker processes.

Forked, because the function's imports are then there already. The caller must not have
started threads. Not ``concurrent.futures``, whose pool forks after it has started a
thread of its own (Python 3.10). A worker ends at once when it is told to, whatever its
parent does about SIGTERM, and takes up nothing more when its parent is gone.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from sluice.errors import NodeError, SluiceError

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


def run_forked(
    function: Callable[[_Item], _Answer], items: Sequence[_Item], workers: int
) -> list[_Answer]:
    """Returns the function's answers in the order of the items.

    Args:
      function: called in a worker; what it returns must be picklable.
      items: each goes to the worker that is free next.
      workers: processes; with 1, everything happens in this one.

    Raises:
      SluiceError, OSError: the function raised it; the other workers are ended.
      NodeError: the function raised another error, or a worker died.
    """
    workers = min(workers, len(items))
    if workers <= 1:
        return [function(item) for item in items]
    context = multiprocessing.get_context("fork")
    following = context.Value("q", 0)
    processes: dict[Connection, Any] = {}
    answers: dict[int, _Answer] = {}
    try:
        for _ in range(workers):
            ours, theirs = context.Pipe(duplex=False)
            arguments = (function, items, following, theirs, os.getpid())
            process = context.Process(target=_work, args=arguments, daemon=True)
            process.start()
            theirs.close()
            processes[ours] = process
        while processes:
            for ready in wait(list(processes)):
                assert isinstance(ready, Connection)
                _receive(ready, processes, answers)
    finally:
        for process in processes.values():
            process.terminate()
            process.join()
    return [answers[index] for index in range(len(items))]


def _work(
    function: Callable[[Any], Any],
    items: Sequence[Any],
    following: Any,
    answers: Connection,
    parent: int,
) -> None:
    """A worker's life: takes the next item until there is none."""
    # The parent's handler raises, and what is raised can be lost; see sluice.interrupt.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A collection would touch, and so copy, what this process shares with its parent.
    gc.freeze()
    while os.getppid() == parent:
        with following.get_lock():
            index = following.value
            following.value += 1
        if index >= len(items):
            answers.send((None, None))
            return
        try:
            answers.send((index, function(items[index])))
        except (SluiceError, OSError) as error:
            answers.send((index, error))
            return
        except Exception as error:
            answers.send((index, _unexpected(error)))
            return


def _receive(
    connection: Connection, processes: dict[Connection, Any], answers: dict[int, Any]
) -> None:
    try:
        index, answer = connection.recv()
    except (EOFError, OSError):
        process = processes[connection]
        process.join()
        raise NodeError(
            "a worker process died",
            where=f"process {process.pid}",
            actual=f"exit code {process.exitcode}",
            hint="If memory ran out, use fewer workers by giving it fewer cores "
            "(taskset).",
        ) from None
    if index is None:
        processes.pop(connection).join()
    elif isinstance(answer, SluiceError | OSError):
        raise answer
    else:
        answers[index] = answer


def _unexpected(error: Exception) -> SluiceError:
    return NodeError(
        "a worker failed",
        actual=f"{type(error).__name__}: {error}",
        examples=traceback.format_exc().splitlines()[-5:],
        hint="The full traceback is in the node's log.",
    )
