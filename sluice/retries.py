"""How often a node is tried again after a failure that may pass by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_LONGEST_WAIT_S = 300.0


@dataclass(frozen=True)
class Retries:
    """Further attempts per node, and the wait before them.

    Attributes:
      default: of nodes that are not named.
      nodes: by node id.
      backoff_s: wait before the second attempt; it doubles with each further one, up
        to five minutes.
    """

    default: int = 0
    nodes: Mapping[str, int] = field(default_factory=dict)
    backoff_s: float = 5.0

    def of(self, node_id: str) -> int:
        """Returns how many further attempts a node has."""
        return self.nodes.get(node_id, self.default)

    def wait_s(self, attempt: int) -> float:
        """Returns the wait in seconds after attempt number ``attempt`` (from 1)."""
        return min(self.backoff_s * 2 ** (attempt - 1), _LONGEST_WAIT_S)
