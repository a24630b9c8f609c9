"""Keeps the record of a run up to date from the runner's events."""

from __future__ import annotations

import contextlib
import math
import shutil
import time
from copy import deepcopy
from pathlib import Path
from typing import Any

from sluice import workspace
from sluice.errors import ExitCode, SluiceError
from sluice.record.journal import Journal
from sluice.record.json_number import json_number
from sluice.record.run_record import (
    ArtifactRecord,
    DocumentRecord,
    ErrorRecord,
    NodeRecord,
    PushRecord,
    RunRecord,
)
from sluice.record.verdict import Verdict

_VERDICTS = ("components.DataVerdict", "components.ModelVerdict")
_SERVED = ("pushed", "already_served")
_PROGRESS_EVERY_S = 2.0


class RecordRun:
    """Writes each event into the journal and what follows from it into the record."""

    def __init__(self, record: RunRecord, run_dir: Path, serving_dir: Path) -> None:
        self.record = record
        self._run_dir = run_dir
        self._journal = Journal(run_dir)
        self._failures: list[tuple[ErrorRecord, int, bool]] = []
        self._finished = False
        self._has_news = False
        self._written_s = -math.inf
        self._resume_command: str | None = None
        record.status, record.exit_code, record.ended_at = "running", None, None
        record.error = record.resume_command = None
        if not record.pushes:
            record.pushes = [PushRecord(destination=str(serving_dir))]
        record.save(run_dir)

    @classmethod
    def open(cls, run_dir: Path) -> RecordRun:
        """Returns what goes on with the record of a run that has begun."""
        record = RunRecord.load(run_dir)
        recorder = cls(record, run_dir, Path(record.pushes[0].destination))
        for event in Journal(run_dir).events():
            if event["event"] in ("run_started", "run_resumed"):
                recorder.replay(event)
        return recorder

    def apply(self, event: dict[str, Any]) -> None:
        """Takes in one event; see ``runners.local.run_result``."""
        self.replay(self._journal.append(event))
        self.record.save(self._run_dir)

    def keep_progress(self, node: str, facts: dict[str, Any]) -> None:
        """Takes in what a running node says of itself; ``tick`` writes it.

        Args:
          node: the node's id.
          facts: as ``sluice.progress`` has them.
        """
        self.record.node(node).progress = _jsonable(facts)
        self._has_news = True

    def tick(self) -> None:
        """Writes what nodes have said of themselves, every few seconds at most."""
        now_s = time.monotonic()
        if self._has_news and now_s - self._written_s >= _PROGRESS_EVERY_S:
            self._has_news, self._written_s = False, now_s
            # A disk that stays full is told of by the next event.
            with contextlib.suppress(OSError):
                self.record.save(self._run_dir)

    def replay(self, event: dict[str, Any]) -> None:
        """Takes in an event of the journal, and writes nothing."""
        getattr(self, f"_on_{event['event']}")(event)

    def close(self, exit_code: ExitCode | None = None, reason: str = "") -> None:
        """Decides the run's status and exit code.

        Args:
          exit_code: INTERRUPTED or TERMINATED if a signal ended the run; it does not
            count if the run had finished before.
          reason: why nodes that were running have no end, such as a signal.
        """
        record = self.record
        if self._finished:
            exit_code = None
        for node in record.nodes:
            if node.state == "running":
                node.state = "interrupted" if exit_code else "failed"
                node.reason = reason
                if not exit_code:
                    self._fail(node.id, f"{node.id} {reason}", int(ExitCode.NODE))
        if not (self._finished or self._failures or exit_code):
            self._fail(None, f"the run {reason}", int(ExitCode.NODE))
        record.ended_at = workspace.utc_now()
        if exit_code:
            record.status, record.exit_code = "interrupted", int(exit_code)
        elif self._failures:
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
        record.save(self._run_dir)

    def stop(self, error: SluiceError) -> None:
        """Ends the record of a run that an error of ours has stopped."""
        code = int(error.exit_code)
        self.apply({"event": "stopped", "message": str(error), "exit_code": code})
        self.close(reason="was ended with the run")

    def close_unchanged(self, last: RunRecord) -> None:
        """Ends the record of a run that had nothing to do since ``last``.

        It takes over what ``last`` has, the documents included.
        """
        record = self.record
        why = f"nothing has changed since run {last.run_id}"
        nodes = deepcopy(last.nodes)
        for node in nodes:
            if node.state != "skipped":
                node.state, node.reason = "cached", why
            node.duration_s, node.attempts = 0.0, 0
            node.started_at = node.peak_memory_bytes = None
        pushes = deepcopy(last.pushes)
        for push in pushes:
            push.state = "already_served"
        record.nodes, record.pushes = nodes, pushes
        record.gates, record.artifacts = deepcopy(last.gates), dict(last.artifacts)
        before = self._run_dir.with_name(last.run_id)
        if last.documents and (before / "record").is_dir():
            (self._run_dir / "record").mkdir()
            for path in (before / "record").iterdir():
                shutil.copyfile(path, self._run_dir / "record" / path.name)
            record.documents = deepcopy(last.documents)
        record.status, record.exit_code = "up_to_date", int(ExitCode.DONE)
        record.ended_at = workspace.utc_now()
        self._journal.append({"event": "finished"})
        record.save(self._run_dir)

    def close_killed(self, reason: str) -> None:
        """Ends the record of a run that was killed before it could do so itself."""
        record = self.record
        for node in record.nodes:
            if node.state == "running":
                node.state, node.reason = "interrupted", reason
        record.status, record.exit_code = "interrupted", None
        record.error = ErrorRecord(None, f"the run {reason}", None)
        record.resume_command = self._resume_command
        record.save(self._run_dir)

    def _on_run_started(self, event: dict[str, Any]) -> None:
        self._resume_command = event["resume_command"]

    def _on_run_resumed(self, event: dict[str, Any]) -> None:
        if event["at"] not in self.record.resumed_at:
            self.record.resumed_at.append(event["at"])
        self._resume_command = event["resume_command"]
        self._failures, self._finished = [], False

    def _on_graph(self, event: dict[str, Any]) -> None:
        """Sets up the nodes; after a resume they keep their times and attempts."""
        before = {node.id: node for node in self.record.nodes}
        self.record.nodes = []
        for node in event["nodes"]:
            fresh = NodeRecord(node["id"], node["kind"], upstream=node["upstream"])
            if node["id"] in before:
                fresh.attempts = before[node["id"]].attempts
                fresh.started_at = before[node["id"]].started_at
                fresh.duration_s = before[node["id"]].duration_s
                fresh.peak_memory_bytes = before[node["id"]].peak_memory_bytes
            self.record.nodes.append(fresh)

    def _on_node_started(self, event: dict[str, Any]) -> None:
        node = self.record.node(event["node"])
        node.state, node.reason, node.progress = "running", None, None
        node.started_at = event["at"]
        node.attempts += 1

    def _on_node_retried(self, event: dict[str, Any]) -> None:
        node = self.record.node(event["node"])
        node.state, node.reason = "running", f"tried again after: {event['reason']}"
        self._note(
            f"{node.id}: attempt {event['attempt']} failed, tried again after "
            f"{event['wait_s']:g} s: {event['reason']}"
        )

    def _on_node_finished(self, event: dict[str, Any]) -> None:
        node = self.record.node(event["node"])
        node.state, node.progress = event["state"], None
        if event["duration_s"] or node.duration_s is None:
            node.duration_s = round(event["duration_s"], 3)
        node.reason = event["reason"]
        node.peak_memory_bytes = event["peak_memory_bytes"] or node.peak_memory_bytes
        node.cache = event.get("cache")
        node.inputs = _uris(event["inputs"])
        node.outputs = _uris(event["outputs"])
        self._add_artifacts(node, event)
        for document in event.get("documents") or []:
            self._add_document(DocumentRecord(**document))
        for text in event.get("notes") or []:
            self._note(text)
        for artifacts in event["outputs"].values():
            for artifact in artifacts:
                if artifact["type"] in _VERDICTS:
                    self._add_verdict(artifact["uri"])
                elif artifact["type"] == "PushedModel":
                    self._on_push(node, artifact["properties"])
        if error := event["error"]:
            self._fail(
                node.id,
                error["message"],
                error["exit_code"],
                error["gate"],
                error["log_tail"],
            )
            if node.kind == "Pusher":
                self.record.pushes[0].state = "failed"
        elif node.kind == "Pusher" and node.state == "blocked":
            self.record.pushes[0].state = "blocked"

    def _on_stopping(self, event: dict[str, Any]) -> None:
        pass

    def _on_stopped(self, event: dict[str, Any]) -> None:
        self._fail(None, event["message"], event["exit_code"])

    def _on_note(self, event: dict[str, Any]) -> None:
        self._note(event["text"])

    def _on_finished(self, event: dict[str, Any]) -> None:
        self._finished = True

    def _on_push(self, node: NodeRecord, properties: dict[str, Any]) -> None:
        push = self.record.pushes[0]
        push.state = properties.get("state", "failed")
        if push.state == "blocked":
            node.state, node.reason = "blocked", "stopped by ModelVerdict"
        if push.state in _SERVED:
            push.version = int(properties["pushed_version"])
            push.uri = properties["pushed_destination"]
            if node.state == "cached":
                push.state = "already_served"

    def _add_artifacts(self, node: NodeRecord, event: dict[str, Any]) -> None:
        known = self.record.artifacts
        for artifacts in event["inputs"].values():
            for artifact in artifacts:
                found = ArtifactRecord(artifact["id"], artifact["type"])
                known.setdefault(artifact["uri"], found)
        for artifacts in event["outputs"].values():
            for artifact in artifacts:
                found = ArtifactRecord(artifact["id"], artifact["type"], node.id)
                before = known.get(artifact["uri"])
                # A resolver puts out what another node has made.
                if before is None or before.producer is None:
                    known[artifact["uri"]] = found

    def _add_document(self, document: DocumentRecord) -> None:
        documents = self.record.documents
        documents[:] = [item for item in documents if item.path != document.path]
        documents.append(document)

    def _add_verdict(self, uri: str) -> None:
        try:
            self._add_gate(Verdict.load(uri).to_dict())
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._note(f"the verdict in {uri} cannot be read: {error}")

    def _add_gate(self, verdict: dict[str, Any]) -> None:
        gates = self.record.gates
        gates[:] = [gate for gate in gates if gate["gate"] != verdict["gate"]]
        gates.append(verdict)

    def _note(self, text: str) -> None:
        if text not in self.record.notes:
            self.record.notes.append(text)

    def _fail(
        self,
        node: str | None,
        message: str,
        exit_code: int,
        gate: bool = False,
        log_tail: tuple[str, ...] | list[str] = (),
    ) -> None:
        log = self._run_dir / "logs" / f"{node or 'start'}.log"
        record = ErrorRecord(
            node, message, str(log) if log.exists() else None, list(log_tail)
        )
        self._failures.append((record, exit_code, gate))


def _jsonable(facts: dict[str, Any]) -> dict[str, Any]:
    """Returns what a node says with its numbers as JSON can hold them."""
    return {
        key: _jsonable(value)
        if isinstance(value, dict)
        else json_number(value)
        if isinstance(value, float)
        else value
        for key, value in facts.items()
    }


def _uris(artifacts: dict[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    return {key: [item["uri"] for item in items] for key, items in artifacts.items()}
