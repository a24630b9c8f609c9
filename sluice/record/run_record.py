"""Run record: what the terminal, ``--json``, history and report show of a run.

It lives in ``runs/<run id>/run.json`` and is the ``--json`` document itself, plus a
few facts that only the history needs (``started_at``, ``command``, ``outputs``).
Its form is versioned by ``SCHEMA_VERSION``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from sluice.storage import atomic

SCHEMA_VERSION = 1
RECORD_FILE = "run.json"
# What earlier versions called a status.
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
      state: how it ended, or that it is running.
      duration_s: wall time of the last attempt; None before its end, 0 if the node did
        not have to run.
      reason: why it is in this state, where that needs saying.
      outputs: the URIs of each output's artifacts.
      inputs: likewise of each input's.
      upstream: the ids of the nodes that it waits for.
      started_at: UTC, ISO 8601; None if it has not started.
      attempts: how often it was started in this run.
      peak_memory_bytes: the largest resident size of its process, TFX included; None
        where it had no process of its own.
      cache: ``key`` and ``parts`` of its cache key; None where it has none.
      progress: what it has last said of itself, such as the epoch; None once it has
        ended.
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
    """Where the model went. ``version`` and ``uri`` are None unless it is served."""

    destination: str
    state: PushState = "not_reached"
    version: int | None = None
    uri: str | None = None


@dataclass
class ErrorRecord:
    """What stopped the run.

    Attributes:
      node: which one; None where it was none of them.
      message: why, and the way out.
      log: the file that says more; None if there is none.
      log_tail: its last lines, where the message cannot say more.
    """

    node: str | None
    message: str
    log: str | None
    log_tail: list[str] = field(default_factory=list)


@dataclass
class ArtifactRecord:
    """An artifact that a node of the run read or made.

    Attributes:
      id: in ML Metadata.
      type: its type's name.
      producer: the node that made it, be it in an earlier run; None if unknown.
    """

    id: int
    type: str
    producer: str | None = None


@dataclass
class DocumentRecord:
    """A file of the record that is too large for ``run.json``.

    Attributes:
      kind: ``statistics``, ``metrics`` or ``epochs``.
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
    """Everything that is known about a run.

    It is rewritten after every event of a node, and every few seconds while nodes tell
    of their progress.

    Attributes:
      run_id: ``YYYYMMDDTHHMMSSZ-xxxx``.
      pipeline: its name.
      started_at: UTC, ISO 8601, as all times here.
      command: what was typed.
      status: see ``RunStatus``.
      exit_code: None while it is running.
      ended_at: None while it is running.
      error: what stopped it first.
      nodes: in the order of the graph.
      gates: verdicts, see ``sluice.record.verdict``.
      pushes: where the model went.
      report_uri: None until reports exist.
      resume_command: what to type to go on; None where there is nothing to go on with.
      artifacts: by URI.
      documents: larger content beside the record.
      config: the resolved config.
      digests: of what the run was made of: ``config``, ``schema``, ``code``, ``data``.
      packages: versions of the packages that decide results.
      spans: those that were chosen, by input: ``data``, ``serving``.
      resumed_at: when the run was continued.
      notes: what happened beside the nodes, such as a lock taken over.
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
    resumed_at: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

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
        """Reads what ``save`` wrote; keys that a later Sluice added are left out.

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
