"""Scheduler: starts nodes in topological order, in parallel, and records their ends.

Each node runs in its own process. A failed node stops only the nodes that depend on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from runners.engine import Observer
from runners.local.processes import Child, wait
from runners.local.stop_request import StopRequest
from sluice import interrupt, progress
from sluice.errors import NodeError, WorkspaceError
from sluice.record.parts import FINISHED, ErrorRecord, NodeEnd, NodeRecord
from sluice.record.run_record import RunRecord

_TAIL_LINES = 8
_SAVE_PROGRESS_EVERY_S = 2.0


def progress_file(run_dir: Path, node: str) -> Path:
    """Returns the file to which a node appends its progress."""
    return run_dir / "progress" / f"{node}.jsonl"


class Scheduler:
    """Runs the nodes of one prepared run.

    Attributes:
      exceptions: what the nodes of a script's pipeline have raised, by node.
    """

    def __init__(
        self,
        record: RunRecord,
        run_dir: Path,
        start: Callable[[NodeRecord], Child],
        observer: Observer,
        stop: StopRequest,
    ) -> None:
        """Prepares to run the nodes of a record that have not ended; starts none.

        Args:
          record: of the run; saved when nodes have started or ended.
          run_dir: its folder.
          start: starts the process of a node.
          observer: of the run.
          stop: set by a signal.
        """
        self.exceptions: dict[str | None, Any] = {}
        self._record, self._run_dir, self._start = record, run_dir, start
        self._observer, self._stop = observer, stop
        self._waiting = [node for node in record.nodes if node.state == "not_reached"]
        self._running: dict[str, tuple[Child, float]] = {}
        # Processes of nodes that have ended, and describe their outputs.
        self._describing: dict[str, Child] = {}
        self._changed: list[NodeRecord] = []
        self._offsets: dict[str, int] = {}
        self._has_news, self._saved_s = False, 0.0

    def run(self) -> bool:
        """Runs until every node has ended or cannot be reached.

        Returns:
          Whether that is so; false if the run was stopped before.

        Raises:
          WorkspaceError: the record cannot be written.
        """
        stopping = killed = False
        try:
            while True:
                if self._stop.signal is None:
                    self._start_ready_nodes()
                elif not stopping and (self._running or self._waiting):
                    stopping = True
                    self._ask_to_stop()
                elif self._stop.urgent and not killed:
                    killed = True
                    for child in self._children():
                        child.close()
                self._save_changes()
                if not self._children():
                    break
                wait(self._children())
                self._end_nodes()
                self._follow_progress()
                self._observer.on_tick()
        finally:
            for child in self._children():
                child.close()
        return not self._waiting and not stopping

    def _children(self) -> list[Child]:
        return [
            *(child for child, _ in self._running.values()),
            *self._describing.values(),
        ]

    def _ask_to_stop(self) -> None:
        if names := list(self._running):
            them = "it" if len(names) == 1 else "them"
            text = f"stopping: {' and '.join(names)} may finish; repeat to kill {them}"
            self._observer.on_note(text)
        for child, _ in self._running.values():
            child.stop()

    def _start_ready_nodes(self) -> None:
        for node in list(self._waiting):
            if stopped := self._record.stopped_by_upstream(node):
                self._waiting.remove(node)
                self._end_node(stopped)
            elif len(self._running) < self._record.options.workers and all(
                self._record.node(name).state in ("ran", "cached", "blocked")
                for name in node.upstream
            ):
                self._waiting.remove(node)
                self._record.start_node(node.id)
                self._changed.append(node)
                path = progress_file(self._run_dir, node.id)
                path.parent.mkdir(exist_ok=True)
                self._offsets[node.id] = path.stat().st_size if path.exists() else 0
                self._running[node.id] = self._start(node), time.monotonic()

    def _end_nodes(self) -> None:
        for node_id, (child, started) in list(self._running.items()):
            if child.has_result:
                self._follow_progress()
                del self._running[node_id]
                self._describing[node_id] = child
                self._end_node(self._end_of(node_id, child, started))
        for node_id, child in list(self._describing.items()):
            if child.has_ended:
                self._add_documents(node_id, self._describing.pop(node_id))

    def _add_documents(self, node_id: str, child: Child) -> None:
        child.close()
        try:
            self._record.add_documents(child.result(1)[0])
        except Exception as error:
            if self._record.node(node_id).state in FINISHED:
                text = f"{node_id}: its outputs could not be described: {error}"
                self._record.note(text.splitlines()[0])
        self._has_news = True

    def _end_of(self, node_id: str, child: Child, started: float) -> NodeEnd:
        try:
            end, self.exceptions[node_id] = child.result()
        except (Exception, interrupt.Interrupted) as error:
            child.close()
            what = error.what if isinstance(error, NodeError) else f"failed: {error!r}"
            text = f"{node_id} {what}"
            failed = ErrorRecord(node_id, text, log_tail=child.output()[-_TAIL_LINES:])
            end = NodeEnd(node_id, "failed", reason=text, error=failed)
        end.duration_s = time.monotonic() - started
        if end.error and child.log.exists():
            end.error.log = str(child.log)
        if end.state == "failed" and self._stop.signal:
            end.state, end.reason, end.error = "interrupted", self._stop.reason, None
        return end

    def _follow_progress(self) -> None:
        for node_id in self._running:
            path = progress_file(self._run_dir, node_id)
            lines, self._offsets[node_id] = progress.read(path, self._offsets[node_id])
            for line in lines:
                self._record.node(node_id).progress = line
                self._has_news = True
                self._observer.on_progress(node_id, line)
        now_s = time.monotonic()
        if self._has_news and now_s - self._saved_s > _SAVE_PROGRESS_EVERY_S:
            self._has_news, self._saved_s = False, now_s
            # If the disk stays full, the end of a node raises the error.
            with suppress(WorkspaceError):
                self._record.save(self._run_dir)

    def _end_node(self, end: NodeEnd) -> None:
        self._record.end_node(end)
        self._changed.append(self._record.node(end.node))

    def _save_changes(self) -> None:
        """Saves the record once for all that has ended and started, as nodes run."""
        if self._changed:
            self._record.save(self._run_dir)
        while self._changed:
            self._observer.on_node(self._record, self._changed.pop(0))
