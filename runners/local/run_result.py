"""What the local runner reports: events while it runs, a result at the end.

An event is a JSON-able dict; the journal of a run (``runs/<run id>/journal.jsonl``)
holds them in their order, each with ``at``, the time in UTC:

* ``{"event": "run_started", "command", "workers", "use_cache", "forced",
  "from_nodes", "to_nodes", "resume_command"}``
* ``{"event": "run_resumed", "command", "workers", "resume_command"}``
* ``{"event": "graph", "nodes": [{"id", "kind", "upstream", "gate"}]}``
* ``{"event": "node_started", "node", "attempt"}``
* ``{"event": "node_finished", "node", "state", "duration_s", "reason", "error",
  "outputs", "inputs", "peak_memory_bytes", "execution_id", "cache", "documents",
  "notes"}``;
  ``outputs`` and ``inputs`` map each key to a list of ``{"id", "type", "uri",
  "properties"}``, and ``error`` is None or ``{"message", "exit_code", "gate",
  "transient", "log_tail", "unresolved"}``
* ``{"event": "node_retried", "node", "attempt", "wait_s", "reason"}``: a transient
  failure that is tried again
* ``{"event": "stopping", "signal", "nodes"}``: asked to end; the nodes still run
* ``{"event": "stopped", "message", "exit_code"}``: the run could not begin or broke
* ``{"event": "note", "text"}``
* ``{"event": "finished"}``: every node has ended or cannot be reached
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sluice.record.run_record import NodeState

# What a node's process adds to its result, and what stands there without it.
_OF_PROCESS: dict[str, Any] = {"cache": None, "documents": [], "notes": []}

OnEvent = Callable[[dict[str, Any]], None]

# The reason of a node that was skipped since nobody asked for it.
NOT_ASKED_FOR = "not in the part asked for"


@dataclass(frozen=True)
class NodeFailure:
    """Why a node failed.

    Attributes:
      message: for the user.
      exit_code: of the run.
      gate: whether the node is a gate that has not passed.
      transient: whether the same node may well succeed if it is tried again.
      log_tail: the last lines of its log, where the message cannot say more.
      unresolved: whether it has not run, since its inputs could not be resolved.
    """

    message: str
    exit_code: int
    gate: bool = False
    transient: bool = False
    log_tail: tuple[str, ...] = ()
    unresolved: bool = False


@dataclass(frozen=True)
class NodeResult:
    """How a node ended, as ML Metadata has it. ``duration_s`` is wall time."""

    node: str
    state: NodeState
    duration_s: float = 0.0
    reason: str | None = None
    error: NodeFailure | None = None
    outputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    inputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    peak_memory_bytes: int | None = None
    execution_id: int | None = None

    def to_event(self, facts: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Returns the ``node_finished`` event.

        Args:
          facts: what the node's process has written, with what only it knows of its
            cache key, documents and notes; None where it has left nothing.
        """
        facts = facts or {}
        known = {key: facts.get(key, empty) for key, empty in _OF_PROCESS.items()}
        return {"event": "node_finished", **asdict(self), **known}


@dataclass(frozen=True)
class RunResult:
    """Every node of the graph, in the order in which it was decided."""

    run_id: str
    nodes: tuple[NodeResult, ...]

    @property
    def succeeded(self) -> bool:
        """Whether every node ran, was cached, or was skipped by its condition."""
        return all(node.state in ("ran", "cached", "skipped") for node in self.nodes)
