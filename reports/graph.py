"""The graph of a pipeline as plain values, for renderers and views.

It knows ids and edges only, so it holds any TFX pipeline, and imports nothing of TFX.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter


@dataclass(frozen=True)
class GraphNode:
    """One node of a pipeline.

    Attributes:
      upstream: the ids of all nodes that it waits for, in any order.
      gate: whether what follows it is stopped where it does not pass.
    """

    id: str
    kind: str
    upstream: tuple[str, ...]
    gate: bool = False


def topological_order(nodes: Sequence[GraphNode]) -> list[GraphNode]:
    """Returns the nodes so that each stands after all that it waits for."""
    by_id = {node.id: node for node in nodes}
    sorter = TopologicalSorter({node.id: node.upstream for node in nodes})
    return [by_id[node_id] for node_id in sorter.static_order()]


def direct_upstream(ordered: Sequence[GraphNode]) -> dict[str, list[str]]:
    """Returns, by node id, the upstream ids that no other upstream node implies.

    An edge is implied where a longer path joins the same two nodes (the edges that
    remain are the transitive reduction). The nodes are in topological order.
    """
    above: dict[str, set[str]] = {}
    direct = {}
    for node in ordered:
        implied = set().union(*(above[upstream] for upstream in node.upstream))
        above[node.id] = implied.union(node.upstream)
        direct[node.id] = [x for x in dict.fromkeys(node.upstream) if x not in implied]
    return direct


def layers(ordered: Sequence[GraphNode]) -> dict[str, int]:
    """Returns the layer of each node, below all that it waits for (longest path).

    A node without upstream lies right above the first that needs it.
    """
    layer: dict[str, int] = {}
    first_use: dict[str, int] = {}
    for node in ordered:
        here = 1 + max((layer[upstream] for upstream in node.upstream), default=-1)
        layer[node.id] = here
        for upstream in node.upstream:
            first_use[upstream] = min(here, first_use.get(upstream, here))
    late = {x.id: first_use.get(x.id, 1) - 1 for x in ordered if not x.upstream}
    return layer | late
