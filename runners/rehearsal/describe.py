"""Describes the artifacts of tasks for the record, in one process beside the run.

Most documents need no TensorFlow, some do; and its reader of ``gs://`` takes the
emulator's address from the environment that its process began with.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any

from runners.cloud.task_event import task_finished
from runners.local.graph_file import PlannedNode
from sluice.node_kinds import DOCUMENTS, VERDICTS
from sluice.process_tree import die_with
from sluice.record.documents.privacy import Privacy
from sluice.record.events import NodeFinished


class Describer:
    """Turns the ends of tasks into events with all that their artifacts hold.

    A context manager; leaving it ends the process.
    """

    def __init__(self, root: Path, environment: Mapping[str, str], log: Path) -> None:
        """Starts no process.

        Args:
          root: of the project.
          environment: variables by which the process finds the emulated services.
          log: what the libraries print is appended to this file.
        """
        self._root, self._environment, self._log = root, dict(environment), log
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Describer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def prewarm(self) -> None:
        """Starts the process; to be called in the thread that outlives it."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                1,
                multiprocessing.get_context("spawn"),
                initializer=_begin,
                initargs=(os.getpid(), self._root, self._environment, self._log),
            )
            self._pool.submit(os.getpid)

    def describe(
        self,
        run_dir: Path,
        node: PlannedNode,
        event: NodeFinished,
        parameters: Mapping[str, Any],
    ) -> NodeFinished:
        """Returns the event with documents, verdicts and the result of a push."""
        types = {item.type for items in event.outputs.values() for item in items}
        if not (types & (DOCUMENTS.keys() | VERDICTS) or node.pushes):
            return event
        assert self._pool is not None
        work = self._pool.submit(_describe, run_dir, node, event, dict(parameters))
        try:
            return work.result()
        except BrokenProcessPool:
            text = f"{node.id}: the process that describes its outputs was killed"
            return replace(event, notes=(*event.notes, text))


def _begin(parent: int, root: Path, environment: dict[str, str], log: Path) -> None:
    die_with(parent)
    # Ctrl-C is for the process that waits for this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.update(environment)
    sys.path.insert(0, str(root))


def _describe(
    run_dir: Path, node: PlannedNode, event: NodeFinished, parameters: dict[str, Any]
) -> NodeFinished:
    privacy = Privacy()
    config = run_dir / "config.json"
    if config.exists():
        from pipeline.config.serialize import privacy_of

        privacy = privacy_of(config)
    return task_finished(run_dir, node, event, parameters, privacy)
