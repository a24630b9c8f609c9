"""Run record: the state and results of a run, ``runs/<run id>/run.json``.

It is the ``--json`` document; its format is versioned by ``SCHEMA_VERSION``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from sluice.storage import atomic

SCHEMA_VERSION = 1
RECORD_FILE = "run.json"
# Tag of a run of ``sluice rehearse``, whose pushes went to an emulated bucket.
REHEARSAL = "rehearsal"
# Statuses of earlier versions.
_RENAMED = {"nothing_to_do": "up_to_date"}

Part = TypeVar("Part")

RunStatus = Literal[
    "succeeded", "up_to_date", "blocked", "failed", "interrupted", "running"
]
NodeState = Literal[
    "ran",
    "cached",
    "skipped",
    "blocked",
    "failed",
    "not_reached",
    "interrupted",
    "running",
]
PushState = Literal["pushed", "already_served", "blocked", "failed", "not_reached"]


class NewerRecordError(ValueError):
    """``run.json`` was written by a newer version of Sluice."""


@dataclass
class NodeRecord:
    """One node of the graph.

    Attributes:
      id: of the node.
      kind: the component's class.
      state: see ``NodeState``.
      duration_s: wall time of the last attempt; None before its end, 0 if the node did
        not have to run.
      reason: why it is in this state, if that needs an explanation.
      outputs: the URIs of each output's artifacts.
      inputs: likewise of each input's.
      upstream: the ids of the nodes that it waits for.
      started_at: UTC, ISO 8601; None if it has not started.
      attempts: how often it was started in this run.
      peak_memory_bytes: peak resident memory of its process, TFX included; None if it
        had no process of its own.
      cache: ``key`` and ``parts`` of its cache key; None if it has none.
      progress: its last progress report, such as the epoch; None after its end.
    """

    id: str
    kind: str
    state: NodeState = "not_reached"
    duration_s: float | None = None
    reason: str | None = None
    outputs: dict[str, list[str]] = field(default_factory=dict)
    inputs: dict[str, list[str]] = field(default_factory=dict)
    upstream: list[str] = field(default_factory=list)
    started_at: str | None = None
    attempts: int = 0
    peak_memory_bytes: int | None = None
    cache: dict[str, Any] | None = None
    progress: dict[str, Any] | None = None


@dataclass
class PushRecord:
    """Result of a push; ``version`` and ``uri`` are None unless it is served."""

    destination: str
    state: PushState = "not_reached"
    version: int | None = None
    uri: str | None = None


@dataclass
class ErrorRecord:
    """The first error of a run.

    Attributes:
      node: the failed node; None if the error was outside of the nodes.
      message: the cause, and how to fix it.
      log: the log file with more detail; None if there is none.
      log_tail: its last lines, if the message alone does not explain the error.
    """

    node: str | None
    message: str
    log: str | None
    log_tail: list[str] = field(default_factory=list)


@dataclass
class ArtifactRecord:
    """An input or output of a node of the run.

    Attributes:
      id: in ML Metadata.
      type: its type's name.
      producer: the node that made it, in this run or an earlier one; None if unknown.
    """

    id: int
    type: str
    producer: str | None = None


@dataclass
class DocumentRecord:
    """A file of the record that is too large for ``run.json``.

    Attributes:
      kind: see ``sluice.node_kinds.DOCUMENTS``.
      node: whose outputs it describes.
      path: relative to the run's folder, such as ``record/Trainer.epochs.json``.
      digest: SHA-256 of its content.
    """

    kind: str
    node: str
    path: str
    digest: str


@dataclass
class RunRecord:
    """The record of a run, ``run.json``.

    It is rewritten after every event, and every few seconds while nodes report
    progress.

    Attributes:
      run_id: ``YYYYMMDDTHHMMSSZ-xxxx``.
      pipeline: its name.
      started_at: UTC, ISO 8601, as all times here.
      command: the command line.
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
      documents: the files in ``record/``.
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
    started_at: str
    command: str
    status: RunStatus = "running"
    exit_code: int | None = None
    ended_at: str | None = None
    error: ErrorRecord | None = None
    nodes: list[NodeRecord] = field(default_factory=list)
    gates: list[dict[str, Any]] = field(default_factory=list)
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

    def gate_rows(self, gate: str) -> list[dict[str, Any]]:
        """Returns the rows of a gate's verdict; none if it has not decided."""
        return [x for item in self.gates if item["gate"] == gate for x in item["rows"]]

    def node(self, node_id: str) -> NodeRecord:
        """Returns the record of a node; KeyError if the graph has none."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise KeyError(node_id)

    def to_dict(self) -> dict[str, Any]:
        """Returns the versioned JSON form."""
        return {"schema_version": SCHEMA_VERSION, **asdict(self)}

    def save(self, run_dir: Path) -> None:
        """Rewrites ``run.json`` atomically."""
        atomic.write_json(run_dir / RECORD_FILE, self.to_dict())

    @classmethod
    def load(cls, run_dir: Path) -> RunRecord:
        """Reads what ``save`` wrote; unknown keys are ignored.

        Raises:
          NewerRecordError: a newer version of Sluice wrote it.
          ValueError: the file is damaged.
        """
        path = run_dir / RECORD_FILE
        data = json.loads(path.read_text(encoding="utf-8"))
        version = data.get("schema_version") if isinstance(data, dict) else None
        if version != SCHEMA_VERSION:
            kind = NewerRecordError if isinstance(version, int) else ValueError
            raise kind(f"{path} has another format than {SCHEMA_VERSION}")
        error = data["error"]
        parts = {
            "status": _RENAMED.get(data["status"], data["status"]),
            "error": _made_of(ErrorRecord, error) if error else None,
            "nodes": [_made_of(NodeRecord, node) for node in data["nodes"]],
            "pushes": [_made_of(PushRecord, push) for push in data["pushes"]],
            "artifacts": {
                uri: _made_of(ArtifactRecord, artifact)
                for uri, artifact in data.get("artifacts", {}).items()
            },
            "documents": [
                _made_of(DocumentRecord, document)
                for document in data.get("documents", [])
            ],
        }
        return _made_of(cls, {**data, **parts})


def _made_of(kind: type[Part], data: dict[str, Any]) -> Part:
    known = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    return kind(**{key: value for key, value in {**data}.items() if key in known})
