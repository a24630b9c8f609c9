"""Run record: the state and results of a run, ``runs/<run id>/run.json``.

The runner changes the record and saves it after each change; whoever shows a run reads
it. Its JSON form is what ``--json`` prints; ``docs/run_record.md`` describes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from sluice.clock import utc_now
from sluice.errors import ExitCode, WorkspaceError
from sluice.json_values import jsonable
from sluice.node_kinds import PUSHERS, REFUSED_BY
from sluice.record.parts import (
    FINISHED,
    ArtifactRecord,
    Artifacts,
    DocumentRecord,
    ErrorRecord,
    NodeEnd,
    NodeRecord,
    NodeState,
    PushRecord,
    RunStatus,
)
from sluice.record.verdict import ORDER, Check, Verdict
from sluice.storage import atomic

SCHEMA_VERSION = 1
RECORD_FILE = "run.json"
# Tag of a run of ``sluice rehearse``, which pushed nothing that is served.
REHEARSAL = "rehearsal"
# The reason of a node that ``--to`` leaves out.
NOT_ASKED_FOR = "not in the part asked for"

_BLESSINGS = ("ModelBlessing", "InfraBlessing")
_STOPPED = ("failed", "blocked", "not_reached", "interrupted")


@dataclass
class RunOptions:
    """How a run was asked for; a resumed run keeps them.

    Attributes:
      workers: number of nodes to run in parallel, at most.
      use_cache: whether nodes may take their outputs from the cache.
      forced: nodes that run even if they are cached.
      to_nodes: run these and what is upstream of them; empty for all.
      accept_data: the reason for overriding the data gate once, or None.
      without_baseline: the reason for beginning without a baseline, or None.
      dry_run: whether it only decides: no later run or command builds on it.
      trial: whether it ends with the model gate, and neither blesses nor pushes.
    """

    workers: int = 1
    use_cache: bool = True
    forced: Sequence[str] = field(default_factory=list)
    to_nodes: Sequence[str] = field(default_factory=list)
    accept_data: str | None = None
    without_baseline: str | None = None
    dry_run: bool = False
    trial: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the run may end at once if nothing has changed since the last."""
        special = self.forced or self.to_nodes or self.accept_data
        return self.use_cache and not (special or self.without_baseline)


@dataclass
class RunRecord:
    """The record of a run, ``run.json``.

    Attributes:
      run_id: ``YYYYMMDDTHHMMSSZ-xxxx``.
      pipeline: its name.
      started_at: UTC, ISO 8601, as all times here.
      command: the command line.
      options: see ``RunOptions``.
      status: see ``RunStatus``.
      exit_code: None while it is running.
      ended_at: None while it is running.
      error: the first error.
      nodes: in the order of the graph.
      gates: verdicts, see ``sluice.record.verdict``.
      pushes: where the model was pushed.
      report_uri: of its page; None before its end.
      resume_command: the command to resume the run; None if there is nothing to resume.
      artifacts: by URI.
      documents: what the outputs hold.
      config: the resolved config.
      digests: of the run's inputs: ``config``, ``schema``, ``code``, ``data``.
      packages: versions of the packages that affect results.
      spans: the chosen spans by input: ``data``, ``serving``.
      tags: the user's, value by key.
      resumed_at: when the run was resumed.
      paused_s: time between its ends and the resumes after them.
      notes: other events, such as a lock that was taken over.
    """

    run_id: str
    pipeline: str
    command: str = ""
    started_at: str = field(default_factory=utc_now)
    options: RunOptions = field(default_factory=RunOptions)
    status: RunStatus = "running"
    exit_code: int | None = None
    ended_at: str | None = None
    error: ErrorRecord | None = None
    nodes: list[NodeRecord] = field(default_factory=list)
    gates: list[Verdict] = field(default_factory=list)
    pushes: list[PushRecord] = field(default_factory=list)
    report_uri: str | None = None
    resume_command: str | None = None
    artifacts: dict[str, ArtifactRecord] = field(default_factory=dict)
    documents: list[DocumentRecord] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    digests: dict[str, Any] = field(default_factory=dict)
    packages: dict[str, str | None] = field(default_factory=dict)
    spans: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    resumed_at: list[str] = field(default_factory=list)
    paused_s: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def has_pushed(self) -> bool:
        """Whether it has pushed a model that is served: no rehearsal has."""
        is_pushed = any(push.state == "pushed" for push in self.pushes)
        return is_pushed and REHEARSAL not in self.tags

    @property
    def was_refused(self) -> bool:
        """Whether it ended, for what the user has given, before any node started."""
        is_usage = self.exit_code == ExitCode.USAGE
        return is_usage and not any(node.attempts for node in self.nodes)

    def gate_rows(self, gate: str) -> list[Check]:
        """Returns the rows of a gate's verdict; none if it has not decided."""
        return [row for x in self.gates if x.gate == gate for row in x.rows]

    def node(self, node_id: str) -> NodeRecord:
        """Returns the record of a node; KeyError if the graph has none."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise KeyError(node_id)

    def resume(self, command: str, workers: int) -> None:
        """Opens a run that has ended; its unfinished nodes are to run again."""
        stopped_at = datetime.fromisoformat(self.ended_at or utc_now())
        pause = datetime.now(timezone.utc) - stopped_at
        self.paused_s += max(0.0, round(pause.total_seconds(), 3))
        self.resumed_at.append(utc_now())
        self.command, self.options.workers = command, workers
        self.status, self.exit_code, self.ended_at = "running", None, None
        self.error = self.resume_command = None
        for node in self.nodes:
            if node.state not in FINISHED:
                node.state, node.reason, node.error = "not_reached", None, None

    def set_graph(self, nodes: Iterable[NodeRecord]) -> None:
        """Sets the nodes; those of a resumed run keep what is known of them."""
        before = {node.id: node for node in self.nodes}
        self.nodes = [before.get(node.id, node) for node in nodes]

    def start_node(self, node_id: str) -> None:
        """Sets a node to running."""
        node = self.node(node_id)
        node.state, node.reason, node.error, node.progress = "running", None, None, None
        node.started_at, node.duration_s = utc_now("milliseconds"), None
        node.peak_memory_bytes = None
        node.attempts += 1

    def end_node(self, end: NodeEnd) -> None:
        """Records the end of a node; the first error is that of the run."""
        node = self.node(end.node)
        node.state, node.reason, node.error = end.state, end.reason, end.error
        node.duration_s, node.progress = round(end.duration_s, 3), None
        node.peak_memory_bytes = end.peak_memory_bytes
        node.inputs, node.outputs = _uris(end.inputs), _uris(end.outputs)
        self._add_artifacts(end)
        self.add_documents(end)
        decided = {verdict.gate for verdict in end.gates}
        kept_gates = [x for x in self.gates if x.gate not in decided]
        self.gates = sorted([*kept_gates, *end.gates], key=_place_of)
        if end.push:
            self.pushes = [replace(end.push, destination=self.pushes[0].destination)]
        if end.push and end.push.state == "blocked" and end.state != "blocked":
            node.state, node.reason = "blocked", self._refusal(end)
        if end.error:
            self.error = self.error or end.error

    def add_documents(self, end: NodeEnd) -> None:
        """Records the documents and notes of a node."""
        paths = {document.path for document in end.documents}
        kept = [item for item in self.documents if item.path not in paths]
        self.documents = [*kept, *end.documents]
        for text in end.notes:
            self.note(text)

    def stopped_by_upstream(self, node: NodeRecord) -> NodeEnd | None:
        """Returns the end of a node that an upstream node stops, None if none does."""
        for name in node.upstream:
            before = self.node(name)
            if before.state == "skipped":
                reason = f"upstream {name} was skipped"
                return NodeEnd(node.id, "skipped", reason=before.reason or reason)
            # A Pusher that ran, and was blocked by a gate, stops no other node. A node
            # that has not ended has no reason.
            if before.state in _STOPPED and before.reason and not before.outputs:
                by_gate = before.state == "blocked"
                by_gate = by_gate or bool(before.error and before.error.gate)
                state: NodeState = "blocked" if by_gate else "not_reached"
                reason = f"stopped by {name}" if before.error else before.reason
                blocked = PushRecord("", "blocked")
                push = blocked if by_gate and node.kind in PUSHERS else None
                return NodeEnd(node.id, state, reason=reason, push=push)
        return None

    def fail(self, message: str, exit_code: int, log: str | None = None) -> None:
        """Records an error outside of the nodes."""
        failed = ErrorRecord(None, message, log, exit_code=int(exit_code))
        self.error = self.error or failed

    def note(self, text: str) -> None:
        """Adds a remark for the reader of the record, once."""
        if text not in self.notes:
            self.notes.append(text)

    def end(self, exit_code: int | None = None, reason: str = "") -> None:
        """Ends the run; its status and exit code follow from nodes, gates and error.

        Args:
          exit_code: INTERRUPTED or TERMINATED if a signal ended the run.
          reason: why nodes that were running have no result, such as a signal.
        """
        self._interrupt_running(reason)
        self.ended_at = utc_now()
        if exit_code:
            self.status, self.exit_code = "interrupted", int(exit_code)
        elif self.error:
            self.status = "blocked" if self.error.gate else "failed"
            self.exit_code = self.error.exit_code
        elif not all(verdict.passed for verdict in self.gates):
            failed = {verdict.gate for verdict in self.gates if not verdict.passed}
            is_serving = failed == {"serving"}
            code = ExitCode.SERVING if is_serving else ExitCode.MODEL
            self.status, self.exit_code = "blocked", int(code)
        elif any(verdict.skips for verdict in self.gates):
            self.status, self.exit_code = "skipped", int(ExitCode.DONE)
        else:
            quiet = all(node.state in ("cached", "skipped") for node in self.nodes)
            self.status = "up_to_date" if quiet else "succeeded"
            self.exit_code = int(ExitCode.DONE)

    def end_unchanged(self, last: RunRecord) -> None:
        """Ends a run without changes since ``last``, with the results of ``last``."""
        why = f"nothing has changed since run {last.run_id}"
        self.nodes = deepcopy(last.nodes)
        for node in self.nodes:
            if node.state != "skipped":
                node.state, node.reason = "cached", why
            node.duration_s, node.attempts, node.progress = 0.0, 0, None
            node.started_at = node.peak_memory_bytes = None
        self.pushes = [replace(push, state="already_served") for push in last.pushes]
        self.gates, self.artifacts = last.gates, last.artifacts
        self.documents, self.report_uri = last.documents, last.report_uri
        self.digests, self.packages, self.spans = (
            last.digests,
            last.packages,
            last.spans,
        )
        self.status, self.exit_code = "up_to_date", int(ExitCode.DONE)
        self.ended_at = utc_now()

    def to_dict(self) -> dict[str, Any]:
        """Returns the versioned JSON form."""
        return {
            "schema_version": SCHEMA_VERSION,
            **jsonable(_adapter().dump_python(self)),
        }

    def save(self, run_dir: Path) -> None:
        """Writes ``run.json`` atomically.

        Raises:
          WorkspaceError: it cannot be written, such as on a full disk.
        """
        try:
            atomic.write_json(run_dir / RECORD_FILE, self.to_dict(), indent=None)
        except OSError as error:
            raise WorkspaceError(
                "the record of the run could not be written",
                where=run_dir,
                actual=error.strerror or str(error),
                hint="free some space, then resume the run",
            ) from error

    @classmethod
    def load_ended(cls, run_dir: Path) -> RunRecord:
        """Reads the record of a run without a process: one that is open was killed.

        Nothing is written.

        Raises:
          WorkspaceError: as for ``load``.
        """
        record = cls.load(run_dir)
        if record.status == "running":
            saved_s = (run_dir / RECORD_FILE).stat().st_mtime
            saved_at = datetime.fromtimestamp(saved_s, timezone.utc)
            record._interrupt_running("was killed")
            record.status, record.ended_at = (
                "interrupted",
                saved_at.isoformat("T", "seconds"),
            )
            record.error = ErrorRecord(None, "the run was killed")
        return record

    @classmethod
    def load(cls, run_dir: Path) -> RunRecord:
        """Reads what ``save`` wrote.

        Raises:
          WorkspaceError: the file is missing, damaged or another version's.
        """
        path = run_dir / RECORD_FILE
        try:
            data = json.loads(path.read_bytes())
            if data["schema_version"] != SCHEMA_VERSION:
                raise ValueError(f"its schema_version is not {SCHEMA_VERSION}")
            return _adapter().validate_python(data)
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise WorkspaceError(
                f"the record of run {run_dir.name} cannot be read",
                where=path,
                actual=str(error),
                hint="start a new run (cached nodes are skipped)",
            ) from error

    def _add_artifacts(self, end: NodeEnd) -> None:
        for items in end.inputs.values():
            for item in items:
                self.artifacts.setdefault(item.uri, ArtifactRecord(item.id, item.type))
        for items in end.outputs.values():
            for item in items:
                known = self.artifacts.get(item.uri)
                # The outputs of a resolver were produced by another node.
                if known is None or known.producer is None:
                    made = ArtifactRecord(item.id, item.type, end.node)
                    self.artifacts[item.uri] = made

    def _refusal(self, end: NodeEnd) -> str:
        """Returns which nodes have not blessed the model of a push."""
        names = [
            item.properties.get(REFUSED_BY)
            or self.artifacts[item.uri].producer
            or "an earlier run"
            for items in end.inputs.values()
            for item in items
            if item.type in _BLESSINGS and not item.properties.get("blessed")
        ]
        return f"stopped by {' and '.join(names) or 'a missing blessing'}"

    def _interrupt_running(self, reason: str) -> None:
        for node in self.nodes:
            if node.state == "running":
                node.state, node.reason, node.progress = "interrupted", reason, None


@cache
def _adapter() -> TypeAdapter[RunRecord]:
    """Returns the reader and writer of records, which takes 30 ms to make."""
    return TypeAdapter(RunRecord)


def _place_of(verdict: Verdict) -> int:
    """Returns where a verdict stands among those of a run."""
    return ORDER.index(verdict.gate) if verdict.gate in ORDER else len(ORDER)


def _uris(artifacts: Artifacts) -> dict[str, list[str]]:
    return {key: [item.uri for item in items] for key, items in artifacts.items()}
