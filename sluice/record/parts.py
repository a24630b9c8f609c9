"""The values that make up a run's record: nodes, artifacts, errors, pushes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from sluice.errors import ExitCode
from sluice.mlmd_items import Artifact
from sluice.record.verdict import Verdict

RunStatus = Literal[
    "succeeded", "up_to_date", "skipped", "blocked", "failed", "interrupted", "running"
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
# States of a node that does not run again when its run is resumed.
FINISHED = ("ran", "cached", "skipped")

Artifacts = dict[str, list[Artifact]]


@dataclass
class ErrorRecord:
    """Why a node or the run failed.

    Attributes:
      node: the failed node; None if the error was outside of the nodes.
      message: the cause, and how to fix it.
      log: the log file with more detail; None if there is none.
      log_tail: its last lines, if the message alone does not explain the error.
      exit_code: of the run.
      gate: whether the node is a gate that has not passed.
    """

    node: str | None
    message: str
    log: str | None = None
    log_tail: list[str] = field(default_factory=list)
    exit_code: int = int(ExitCode.NODE)
    gate: bool = False


@dataclass
class PushRecord:
    """Result of a push; ``version`` and ``uri`` are None unless it is served."""

    destination: str
    state: PushState = "not_reached"
    version: int | None = None
    uri: str | None = None


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
    """A file with what an artifact holds.

    Attributes:
      kind: see ``sluice.node_kinds.DOCUMENTS``.
      node: whose output it describes.
      path: relative to the run's folder, such as ``../../documents/7.epochs.json``.
    """

    kind: str
    node: str
    path: str


@dataclass
class NodeEnd:
    """How a node ended: what its process returns.

    Attributes:
      node: its id.
      state: see ``NodeState``.
      duration_s: wall time.
      reason: why it is in this state, if that needs an explanation.
      error: why it failed, None if it did not.
      inputs: artifacts by input key.
      outputs: artifacts by output key.
      gates: the verdicts among its outputs.
      push: the result of a node that pushes a model.
      documents: the files that describe its outputs.
      notes: for the notes of the record.
      peak_memory_bytes: peak resident memory of its process.
    """

    node: str
    state: NodeState
    duration_s: float = 0.0
    reason: str | None = None
    error: ErrorRecord | None = None
    inputs: Artifacts = field(default_factory=dict)
    outputs: Artifacts = field(default_factory=dict)
    gates: list[Verdict] = field(default_factory=list)
    push: PushRecord | None = None
    documents: list[DocumentRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    peak_memory_bytes: int | None = None


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
      error: why it failed.
      outputs: the URIs of each output's artifacts.
      inputs: likewise of each input's.
      upstream: the ids of the nodes that it waits for.
      started_at: UTC, ISO 8601; None if it has not started.
      attempts: how often it was started in this run.
      peak_memory_bytes: peak resident memory of its process, TFX included; None if it
        had no process of its own or was killed.
      progress: its last progress report, such as the epoch; None after its end.
    """

    id: str
    kind: str
    state: NodeState = "not_reached"
    duration_s: float | None = None
    reason: str | None = None
    error: ErrorRecord | None = None
    outputs: dict[str, list[str]] = field(default_factory=dict)
    inputs: dict[str, list[str]] = field(default_factory=dict)
    upstream: list[str] = field(default_factory=list)
    started_at: str | None = None
    attempts: int = 0
    peak_memory_bytes: int | None = None
    progress: dict[str, Any] | None = None
