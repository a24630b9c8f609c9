"""The record of one run: what the terminal, ``--json``, history and report show.

It lives in ``runs/<run id>/run.json`` and is the ``--json`` document itself, plus a
few facts that only the history needs (``started_at``, ``command``, ``outputs``).
Its form is versioned by ``SCHEMA_VERSION``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from sluice import atomic

SCHEMA_VERSION = 1
RECORD_FILE = "run.json"

RunStatus = Literal[
    "succeeded", "nothing_to_do", "blocked", "failed", "interrupted", "running"
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


@dataclass
class NodeRecord:
    """One node of the graph. ``duration_s`` is wall time; None before it ended."""

    id: str
    kind: str
    state: NodeState = "not_reached"
    duration_s: float | None = None
    reason: str | None = None
    outputs: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class PushRecord:
    """Where the model went. ``version`` and ``uri`` are None unless it is served."""

    destination: str
    state: PushState = "not_reached"
    version: int | None = None
    uri: str | None = None


@dataclass
class ErrorRecord:
    """What stopped the run: the node (None before the first), why, and its log."""

    node: str | None
    message: str
    log: str | None


@dataclass
class RunRecord:
    """Everything that is known about a run; rewritten after every node event."""

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
        """Reads what ``save`` wrote.

        Raises:
          ValueError: the file is damaged or was written in another format.
        """
        path = run_dir / RECORD_FILE
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.pop("schema_version", None) != SCHEMA_VERSION:
            raise ValueError(f"{path} has another format than {SCHEMA_VERSION}")
        error = data["error"]
        return cls(
            **{
                **data,
                "error": ErrorRecord(**error) if error else None,
                "nodes": [NodeRecord(**node) for node in data["nodes"]],
                "pushes": [PushRecord(**push) for push in data["pushes"]],
            }
        )
