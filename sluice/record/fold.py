"""Computes the record of a run from its events: a pure fold.

The record depends on the events alone, not on files, ML Metadata or the clock. Any
sequence that begins with ``run_started`` has a record, even if lines are lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import NoReturn

from sluice.errors import ExitCode
from sluice.record.events import (
    Artifact,
    DocumentsAdded,
    Event,
    Finished,
    GraphCompiled,
    InputsRead,
    NodeFinished,
    NodeRetried,
    NodeStarted,
    Note,
    ReportWritten,
    RunEnded,
    RunKilled,
    RunResumed,
    RunStarted,
    RunUnchanged,
    SpansChosen,
    Stopped,
    Stopping,
)
from sluice.record.run_record import (
    ArtifactRecord,
    DocumentRecord,
    ErrorRecord,
    NodeRecord,
    NodeState,
    PushRecord,
    RunRecord,
)


def fold(events: Iterable[Event]) -> RunRecord:
    """Returns the record of a run.

    Raises:
      ValueError: the first event is not ``run_started``.
    """
    folded = Fold()
    for event in events:
        folded.apply(event)
    return folded.record


class Fold:
    """Incremental ``fold``: updates a record event by event.

    Attributes:
      graph: the latest event ``graph``; None before.

    Args:
      record: the record so far, if its events cannot be read.
    """

    def __init__(self, record: RunRecord | None = None) -> None:
        self._record = record
        self._run_started_event: RunStarted | None = None
        self._failures: list[tuple[ErrorRecord, int, bool]] = []
        self._finished = False
        self._resume_command: str | None = None
        self._last_at = record and record.ended_at
        self.graph: GraphCompiled | None = None

    @property
    def record(self) -> RunRecord:
        """The record so far; the same object after every event.

        Raises:
          ValueError: there was no ``run_started`` event.
        """
        if self._record is None:
            raise ValueError("the event run_started is missing")
        return self._record

    @property
    def run_started(self) -> RunStarted:
        """The event ``run_started``.

        Raises:
          ValueError: there was none.
        """
        if self._run_started_event is None:
            raise ValueError("the event run_started is missing")
        return self._run_started_event

    def apply(self, event: Event) -> None:
        """Updates the record with the next event.

        Raises:
          ValueError: it is the first and not ``run_started``.
        """
        match event:
            case RunStarted():
                self._run_started(event)
            case RunResumed():
                self._run_resumed(event)
            case InputsRead():
                self.record.digests = event.digests
                self.record.packages = event.packages
            case SpansChosen():
                self.record.spans = event.spans
            case GraphCompiled():
                self._graph_compiled(event)
            case NodeStarted():
                self._node_started(event)
            case NodeRetried():
                self._node_retried(event)
            case NodeFinished():
                self._node_finished(event)
            case DocumentsAdded():
                self._add_documents(event.documents)
            case Stopping():
                pass
            case Stopped():
                self._fail(None, event.message, event.exit_code, event.log)
            case Note():
                self._note(event.text)
            case Finished():
                self._finished = True
            case RunUnchanged():
                self._run_unchanged(event)
            case RunEnded():
                self._run_ended(event)
            case RunKilled():
                self._run_killed(event)
            case ReportWritten():
                self.record.report_uri = event.uri
            case _:
                _never(event)
        if not isinstance(event, RunKilled | ReportWritten):
            self._last_at = event.at

    def _run_started(self, event: RunStarted) -> None:
        self._run_started_event = event
        self._record = RunRecord(
            run_id=event.run_id,
            pipeline=event.pipeline,
            started_at=_to_seconds(event.at),
            command=event.command,
            pushes=[PushRecord(event.destination)],
            config=event.config,
            tags=event.tags,
        )
        self._begin(event)

    def _run_resumed(self, event: RunResumed) -> None:
        record = self.record
        record.status, record.exit_code, record.ended_at = "running", None, None
        record.error = record.resume_command = None
        record.resumed_at.append(_to_seconds(event.at))
        # Of a killed run, the time from its last event.
        if self._last_at:
            record.paused_s += max(0.0, _seconds_between(self._last_at, event.at))
        self._begin(event)

    def _begin(self, event: RunStarted | RunResumed) -> None:
        self._failures, self._finished = [], False
        self._resume_command = event.resume_command
        for note in event.notes:
            self._note(note)

    def _graph_compiled(self, event: GraphCompiled) -> None:
        """Resets the nodes; after a resume they keep times, memory and attempts."""
        record, self.graph = self.record, event
        before = {node.id: node for node in record.nodes}
        record.nodes = []
        for node in event.nodes:
            fresh = NodeRecord(node.id, node.kind, upstream=list(node.upstream))
            if old := before.get(node.id):
                fresh.attempts, fresh.started_at = old.attempts, old.started_at
                fresh.duration_s = old.duration_s
                fresh.peak_memory_bytes = old.peak_memory_bytes
            record.nodes.append(fresh)

    def _node_started(self, event: NodeStarted) -> None:
        node = self._node(event.node)
        node.state, node.reason, node.progress = "running", None, None
        node.started_at, node.duration_s, node.peak_memory_bytes = event.at, None, None
        # Older journals have attempt 1 after every resume.
        node.attempts = max(node.attempts + 1, event.attempt)
        # ``run_node`` may run a node again after a failure.
        self._failures = [item for item in self._failures if item[0].node != node.id]

    def _node_retried(self, event: NodeRetried) -> None:
        node = self._node(event.node)
        node.state, node.reason = "running", f"tried again after: {event.reason}"
        self._note(
            f"{node.id}: attempt {event.attempt} failed, tried again after "
            f"{event.wait_s:g} s: {event.reason}"
        )

    def _node_finished(self, event: NodeFinished) -> None:
        node, record = self._node(event.node), self.record
        node.state, node.reason, node.progress = event.state, event.reason, None
        # A resume repeats the event of a node that finished before it. After a kill the
        # duration is 0: unknown if there was an attempt.
        if node.duration_s is None and (event.duration_s or not node.attempts):
            node.duration_s = round(event.duration_s, 3)
        node.peak_memory_bytes = event.peak_memory_bytes or node.peak_memory_bytes
        node.cache = event.cache
        node.inputs, node.outputs = _uris(event.inputs), _uris(event.outputs)
        self._add_artifacts(event)
        self._add_documents(event.documents)
        for text in event.notes:
            self._note(text)
        new = {verdict["gate"] for verdict in event.gates}
        kept = [gate for gate in record.gates if gate["gate"] not in new]
        record.gates = [*kept, *event.gates]
        if push := event.push:
            record.pushes[0] = replace(record.pushes[0], state=push.state)
            if push.version is not None:
                record.pushes[0].version, record.pushes[0].uri = push.version, push.uri
        if error := event.error:
            tail = list(error.log_tail)
            failure = ErrorRecord(node.id, error.message, event.log, tail)
            self._failures.append((failure, error.exit_code, error.gate))

    def _add_documents(self, added: Sequence[DocumentRecord]) -> None:
        new = {document.path for document in added}
        kept = [item for item in self.record.documents if item.path not in new]
        self.record.documents = [*kept, *added]

    def _add_artifacts(self, event: NodeFinished) -> None:
        known = self.record.artifacts
        for artifact in chain(*event.inputs.values()):
            known.setdefault(artifact.uri, ArtifactRecord(artifact.id, artifact.type))
        for artifact in chain(*event.outputs.values()):
            before = known.get(artifact.uri)
            # The outputs of a resolver were produced by another node.
            if before is None or before.producer is None:
                found = ArtifactRecord(artifact.id, artifact.type, event.node)
                known[artifact.uri] = found

    def _run_unchanged(self, event: RunUnchanged) -> None:
        record = self.record
        why = f"nothing has changed since run {event.since}"
        record.nodes = deepcopy(list(event.nodes))
        for node in record.nodes:
            if node.state != "skipped":
                node.state, node.reason = "cached", why
            node.duration_s, node.attempts, node.progress = 0.0, 0, None
            node.started_at = node.peak_memory_bytes = None
        record.pushes = [replace(push, state="already_served") for push in event.pushes]
        record.gates, record.artifacts = list(event.gates), dict(event.artifacts)
        record.documents = list(event.documents)
        record.status, record.exit_code = "up_to_date", int(ExitCode.DONE)
        record.ended_at = _to_seconds(event.at)

    def _run_ended(self, event: RunEnded) -> None:
        """Decides the run's status and exit code."""
        record = self.record
        # A signal does not count if the run had finished before.
        exit_code = None if self._finished else event.exit_code
        for node in self._end_running("interrupted" if exit_code else "failed", event):
            if not exit_code:
                text, log = f"{node} {event.reason}", event.logs.get(node)
                self._fail(node, text, ExitCode.NODE, log)
        if not (self._finished or self._failures or exit_code):
            text, log = f"the run {event.reason}", event.logs.get("start")
            self._fail(None, text, ExitCode.NODE, log)
        record.ended_at = _to_seconds(event.at)
        if exit_code:
            record.status, record.exit_code = "interrupted", exit_code
        elif self._failures:
            # The first failure counts.
            record.error, record.exit_code, gate = self._failures[0]
            record.status = "blocked" if gate else "failed"
        elif not all(gate["passed"] for gate in record.gates):
            record.status, record.exit_code = "blocked", int(ExitCode.MODEL)
        else:
            quiet = all(node.state in ("cached", "skipped") for node in record.nodes)
            record.status = "up_to_date" if quiet else "succeeded"
            record.exit_code = int(ExitCode.DONE)
        refused = record.exit_code == ExitCode.USAGE
        if record.status in ("failed", "interrupted") and not refused:
            record.resume_command = self._resume_command

    def _run_killed(self, event: RunKilled) -> None:
        self._end_running("interrupted", event)
        record = self.record
        record.status, record.exit_code = "interrupted", None
        record.error = ErrorRecord(None, f"the run {event.reason}", None)
        record.resume_command = self._resume_command

    def _end_running(self, state: NodeState, event: RunEnded | RunKilled) -> list[str]:
        """Sets the state of the running nodes and returns their ids."""
        running = [node for node in self.record.nodes if node.state == "running"]
        for node in running:
            node.state, node.reason, node.progress = state, event.reason, None
        return [node.id for node in running]

    def _node(self, node_id: str) -> NodeRecord:
        try:
            return self.record.node(node_id)
        except KeyError:
            # The line of the event ``graph`` is lost.
            self.record.nodes.append(NodeRecord(node_id, kind=""))
            return self.record.nodes[-1]

    def _note(self, text: str) -> None:
        if text not in self.record.notes:
            self.record.notes.append(text)

    def _fail(
        self, node: str | None, message: str, exit_code: int, log: str | None
    ) -> None:
        """Adds a failure of the run, which is not that of a gate."""
        self._failures.append((ErrorRecord(node, message, log), int(exit_code), False))


def _uris(artifacts: dict[str, list[Artifact]]) -> dict[str, list[str]]:
    return {key: [item.uri for item in items] for key, items in artifacts.items()}


def _to_seconds(at: str) -> str:
    return datetime.fromisoformat(at).isoformat(timespec="seconds")


def _seconds_between(start: str, end: str) -> float:
    begun = datetime.fromisoformat(start)
    return round((datetime.fromisoformat(end) - begun).total_seconds(), 3)


def _never(event: NoReturn) -> NoReturn:
    raise AssertionError(f"an event without a rule: {event!r}")
