"""Result of the local runner: the state of each node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sluice.record.events import Event, NodeFailure
from sluice.record.run_record import NodeState

OnEvent = Callable[[Event], None]

# The reason of a node that `--from`, `--to` or `--only` leave out.
NOT_ASKED_FOR = "not in the part asked for"


@dataclass(frozen=True)
class NodeResult:
    """Result of a node according to ML Metadata.

    Attributes:
      node: its id.
      state: see ``NodeState``.
      duration_s: wall time.
      reason: why it is in this state, if that needs an explanation.
      error: why it failed.
      outputs: by key, a list of ``{"id", "type", "uri", "properties"}``.
      inputs: likewise.
      peak_memory_bytes: of its process.
      execution_id: in ML Metadata.
    """

    node: str
    state: NodeState
    duration_s: float = 0.0
    reason: str | None = None
    error: NodeFailure | None = None
    outputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    inputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    peak_memory_bytes: int | None = None
    execution_id: int | None = None


@dataclass(frozen=True)
class RunResult:
    """The results of a run's nodes, in the order of the graph."""

    run_id: str
    nodes: tuple[NodeResult, ...]

    @property
    def succeeded(self) -> bool:
        """Whether every node ran, was cached, or was skipped by its condition."""
        return all(node.state in ("ran", "cached", "skipped") for node in self.nodes)
