"""The graph of a pipeline as plain values, for renderers and views.

It knows ids and edges only, so it holds any TFX pipeline, and imports nothing of TFX.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
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
    """Returns the nodes so that each stands after all that it waits for.

    Branches stay together and a node without upstream stands right before the first
    that needs it, so that a drawing in this order has short lines. The order depends on
    the graph and on the given order alone.
    """
    by_id = {node.id: node for node in nodes}
    place = {node.id: index for index, node in enumerate(nodes)}
    depth = _depths(nodes)
    waited_for = {upstream for node in nodes for upstream in node.upstream}
    done: dict[str, GraphNode] = {}
    # Post-order from the last nodes up, on a stack: the deepest branch comes first.
    stack = [node.id for node in reversed(nodes) if node.id not in waited_for]
    while stack:
        node = by_id[stack[-1]]
        waiting = [upstream for upstream in node.upstream if upstream not in done]
        if waiting:
            stack.append(max(waiting, key=lambda up: (depth[up], -place[up])))
        else:
            done.setdefault(stack.pop(), node)
    return list(done.values())


def direct_upstream(nodes: Iterable[GraphNode]) -> dict[str, tuple[str, ...]]:
    """Returns, by node id, the upstream ids that no other upstream node implies.

    An edge is implied where a longer path joins the same two nodes (the edges that
    remain are the transitive reduction). The nodes are in topological order.
    """
    above: dict[str, set[str]] = {}
    direct = {}
    for node in nodes:
        implied = set().union(*(above[upstream] for upstream in node.upstream))
        above[node.id] = implied.union(node.upstream)
        direct[node.id] = tuple(
            upstream
            for upstream in dict.fromkeys(node.upstream)
            if upstream not in implied
        )
    return direct


def layers(nodes: Sequence[GraphNode], width: int) -> list[list[GraphNode]]:
    """Returns the nodes in layers, each below all that it waits for.

    Each lies as high as it can (longest path), but for nodes without upstream, which
    lie right above the first that needs them.

    Args:
      nodes: in topological order.
      width: how many nodes a layer may hold; the next ones go to the layer below.
    """
    layer_of: dict[str, int] = {}
    filled: Counter[int] = Counter()
    first_use: dict[str, int] = {}
    for node in nodes:
        layer = 1 + max((layer_of[upstream] for upstream in node.upstream), default=-1)
        while filled[layer] >= width:
            layer += 1
        layer_of[node.id] = layer
        filled[layer] += 1
        for upstream in node.upstream:
            first_use[upstream] = min(layer, first_use.get(upstream, layer))
    for node in nodes:
        if node.upstream or node.id not in first_use:
            continue
        here = layer_of[node.id]
        for lower in range(first_use[node.id] - 1, here, -1):
            if filled[lower] < width:
                layer_of[node.id] = lower
                filled.update({here: -1, lower: 1})
                break
    return [
        [node for node in nodes if layer_of[node.id] == layer]
        for layer in sorted(set(layer_of.values()))
    ]


def _depths(nodes: Sequence[GraphNode]) -> dict[str, int]:
    """Returns how many nodes the longest path to each holds."""
    upstream = {node.id: node.upstream for node in nodes}
    depth: dict[str, int] = {}
    for node_id in TopologicalSorter(upstream).static_order():
        depth[node_id] = 1 + max((depth[up] for up in upstream[node_id]), default=0)
    return depth
