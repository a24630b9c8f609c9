"""Recorder: appends events to the journal and rewrites ``run.json``.

Nothing else changes either file. Several processes may record one run: each folds the
events of all, in the order of the journal, before it writes.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sluice.errors import ExitCode, SluiceError
from sluice.record.events import (
    Event,
    GraphCompiled,
    RunEnded,
    RunKilled,
    RunStarted,
    RunUnchanged,
    Stopped,
)
from sluice.record.fold import Fold
from sluice.record.journal import Journal, JournalError
from sluice.record.json_number import json_number
from sluice.record.run_record import RunRecord
from sluice.storage import atomic

_PROGRESS_EVERY_S = 2.0


class Recorder:
    """Appends events to the journal of a run and keeps its ``run.json`` up to date."""

    def __init__(
        self,
        run_dir: Path,
        on_event: Callable[[Event, RunRecord], None] = lambda event, record: None,
    ) -> None:
        """Reads the journal, if there is one.

        Args:
          run_dir: the run's folder.
          on_event: called with each event of this recorder, and the record.

        Raises:
          JournalError: it is damaged, or another version of Sluice wrote it.
        """
        self.run_dir = run_dir
        self._journal = Journal(run_dir)
        self._fold = Fold()
        self._on_event = on_event
        self._has_news = False
        self._written_s = -math.inf
        self._catch_up()

    @property
    def record(self) -> RunRecord:
        """The record, the same object after every event; read-only.

        Raises:
          JournalError: there is no ``run_started`` event.
        """
        with self._explain_damage():
            return self._fold.record

    @property
    def run_started(self) -> RunStarted:
        """The event ``run_started``.

        Raises:
          JournalError: there is none.
        """
        with self._explain_damage():
            return self._fold.run_started

    @property
    def graph(self) -> GraphCompiled | None:
        """The latest event ``graph``; None if there is none yet."""
        return self._fold.graph

    def refresh(self) -> RunRecord:
        """Returns the record with the events of other processes."""
        self._catch_up()
        return self.record

    def apply(self, event: Event) -> None:
        """Appends an event, rewrites ``run.json``, and calls ``on_event``."""
        with atomic.lock(self._journal.path):
            dated = self._journal.append(event)
            self._catch_up()
            self.record.save(self.run_dir)
        self._on_event(dated, self.record)

    def show_progress(self, node: str, facts: dict[str, Any]) -> None:
        """Sets the progress of a running node in the record; ``tick`` writes it.

        Progress is not an event, because its amount is unbounded. The next event of the
        node, or the run's last, removes it from the record.

        Args:
          node: the node's id.
          facts: the arguments of ``sluice.progress.report``.
        """
        self.record.node(node).progress = _jsonable(facts)
        self._has_news = True

    def tick(self) -> None:
        """Writes new progress to ``run.json``, every two seconds at most."""
        now_s = time.monotonic()
        if not self._has_news or now_s - self._written_s < _PROGRESS_EVERY_S:
            return
        self._has_news, self._written_s = False, now_s
        # If the disk stays full, the next event raises the error.
        with contextlib.suppress(OSError), atomic.lock(self._journal.path):
            self._catch_up()
            self.record.save(self.run_dir)

    def stop(self, error: SluiceError) -> None:
        """Ends a run with an error outside of its nodes."""
        log = self.log_of("start")
        code = int(error.exit_code)
        self.apply(Stopped(message=str(error), exit_code=code, log=log))
        self.end(reason="was ended with the run")

    def end(self, exit_code: ExitCode | None = None, reason: str = "") -> None:
        """Ends the run; its status and exit code follow from its events.

        Args:
          exit_code: INTERRUPTED or TERMINATED if a signal ended the run.
          reason: why nodes that were running have no result, such as a signal.
        """
        nodes = self.refresh().nodes
        running = [node.id for node in nodes if node.state == "running"]
        logs = {name: self.log_of(name) for name in (*running, "start")}
        self.apply(
            RunEnded(
                exit_code=int(exit_code) if exit_code else None,
                reason=reason,
                logs={name: log for name, log in logs.items() if log},
            )
        )

    def end_unchanged(self, last: RunRecord) -> None:
        """Ends a run without changes since ``last``, with the results of ``last``."""
        before = self.run_dir.with_name(last.run_id) / "record"
        has_documents = bool(last.documents) and before.is_dir()
        if has_documents:
            shutil.copytree(
                before, self.run_dir / "record", copy_function=shutil.copyfile
            )
        self.apply(
            RunUnchanged(
                since=last.run_id,
                nodes=tuple(last.nodes),
                gates=tuple(last.gates),
                pushes=tuple(last.pushes),
                artifacts=last.artifacts,
                documents=tuple(last.documents) if has_documents else (),
            )
        )

    def end_killed(self, reason: str) -> None:
        """Ends a run whose process was killed."""
        if self.record.status == "running":
            self.apply(RunKilled(reason=reason))
        else:
            # Its process was killed after the last event.
            self.record.save(self.run_dir)

    def log_of(self, name: str) -> str | None:
        """Returns the log of a node, or of the run's ``start``; None if it has none."""
        log = self.run_dir / "logs" / f"{name}.log"
        return str(log) if log.exists() else None

    def _catch_up(self) -> None:
        try:
            with self._explain_damage():
                for event in self._journal.new_events():
                    self._fold.apply(event)
        except KeyboardInterrupt:
            # Events may be read and not folded: start over.
            self._journal, self._fold = Journal(self.run_dir), Fold()
            raise

    @contextlib.contextmanager
    def _explain_damage(self) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise JournalError(
                f"the journal of run {self.run_dir.name} is damaged",
                where=self._journal.path,
                expected="a line with the event 'run_started'",
                hint="start a new run with `sluice run`; cached nodes are skipped",
            ) from error


def _jsonable(facts: dict[str, Any]) -> dict[str, Any]:
    """Returns a progress report with numbers that JSON can represent."""
    return {
        key: _jsonable(value)
        if isinstance(value, dict)
        else json_number(value)
        if isinstance(value, float)
        else value
        for key, value in facts.items()
    }
