"""Kills nodes at exact moments of their execution.

The zygote of the tests imports this module last, so it is in every node's process.
A file ``<node>`` in the folder ``$FAULTS_MOMENTS`` holds the moment at which that node
is killed; the node deletes the file when it has read it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tfx.orchestration.portable import execution_publish_utils, launcher

from components.tfrecord_gen import ingest
from sluice.progress import PROGRESS_FILE

FOLDER = "FAULTS_MOMENTS"
_launch = launcher.Launcher.launch


def _launch_or_die(self: Any) -> Any:
    order = Path(os.environ[FOLDER]) / self._pipeline_node.node_info.id
    if order.exists() and PROGRESS_FILE in os.environ:
        # Only in the node's own process, not where cached nodes are resolved before it.
        moment = order.read_text()
        order.unlink()
        _MOMENTS[moment]()
    return _launch(self)


def _die(*args: Any, **kwargs: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _before_publication() -> None:
    """The outputs are written; ML Metadata does not know of them yet."""
    execution_publish_utils.publish_succeeded_execution = _die


def _with_a_full_disk() -> None:
    """Nothing more fits into the journal of the run."""
    run_dir = Path(os.environ[PROGRESS_FILE]).parents[1]
    journal = run_dir / "journal.jsonl"
    journal.rename(run_dir / "journal.kept")
    journal.symlink_to("/dev/full")
    _die()


def _between_shards() -> None:
    """One of several shards of a split has its final name."""
    ingest._GROUP_BYTES = 1  # so that every file becomes a shard
    renamed: list[Any] = []

    def on_audit_event(event: str, args: tuple[Any, ...]) -> None:
        if event == "os.rename" and "/Split-" in str(args[1]):
            if renamed:
                _die()
            renamed.append(args[1])

    sys.addaudithook(on_audit_event)


_MOMENTS: dict[str, Callable[[], None]] = {
    "at the start": _die,
    "between shards": _between_shards,
    "before publication": _before_publication,
    "with a full disk": _with_a_full_disk,
}
launcher.Launcher.launch = _launch_or_die
