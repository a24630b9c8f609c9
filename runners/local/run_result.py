"""What the local runner reports: events while it runs, a result at the end.

An event is a JSON-able dict, so that it can cross a pipe:

* ``{"event": "graph", "nodes": [{"id", "kind", "upstream"}]}``
* ``{"event": "node_started", "node"}``
* ``{"event": "node_finished", "node", "state", "duration_s", "reason", "error",
  "outputs"}``; ``outputs`` maps each output to a list of ``{"type", "uri",
  "properties"}``, and ``error`` is None or ``{"message", "exit_code", "gate"}``.

The child process of the command line adds two of its own: ``stopped`` with ``message``
and ``exit_code`` if the run could not begin or broke, and ``finished`` at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from sluice.run_record import NodeState

OnEvent = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class NodeFailure:
    """Why a node failed: the text for the user, the exit code, and if it is a gate."""

    message: str
    exit_code: int
    gate: bool = False


@dataclass(frozen=True)
class NodeResult:
    """How a node ended, as ML Metadata has it. ``duration_s`` is wall time."""

    node: str
    state: NodeState
    duration_s: float = 0.0
    reason: str | None = None
    error: NodeFailure | None = None
    outputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def to_event(self) -> dict[str, Any]:
        """Returns the ``node_finished`` event."""
        return {"event": "node_finished", **asdict(self)}


@dataclass(frozen=True)
class RunResult:
    """Every node of the graph, in the order in which it was decided."""

    run_id: str
    nodes: tuple[NodeResult, ...]

    @property
    def succeeded(self) -> bool:
        """Whether every node ran, was cached, or was skipped by its condition."""
        return all(node.state in ("ran", "cached", "skipped") for node in self.nodes)
