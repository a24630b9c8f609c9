"""The graph of a pipeline as plain values: its order and layers, and as text.

It knows ids and edges only, so it holds any TFX pipeline, and imports nothing of TFX.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from rich.cells import cell_len

# All that may mean something to Mermaid or to the Markdown in its labels.
_SPECIAL = re.compile(r"[^\w .,-]")


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


def as_text(nodes: Sequence[GraphNode]) -> str:
    """Returns a line per node, after those that it waits for.

    In parentheses are the nodes that it waits for because others do.
    """
    ordered = topological_order(nodes)
    direct = direct_upstream(ordered)
    labels = {node.id: _label(node) for node in ordered}
    width = max(map(cell_len, labels.values()), default=0)
    lines = []
    for node in ordered:
        label, waits = labels[node.id], ", ".join(direct[node.id])
        implied = [x for x in dict.fromkeys(node.upstream) if x not in direct[node.id]]
        waits += f" ({', '.join(implied)})" if implied else ""
        padding = " " * (width - cell_len(label))
        lines.append(f"{label}{padding}  after {waits}" if waits else label)
    return "\n".join(lines)


def _label(node: GraphNode) -> str:
    facts = [node.kind] if node.kind != node.id else []
    facts += ["gate"] if node.gate else []
    return f"{node.id} [{', '.join(facts)}]" if facts else node.id


def as_mermaid(nodes: Sequence[GraphNode]) -> str:
    """Returns a ``flowchart TD`` of the edges that no longer path implies.

    Gates are hexagons; ids are only used as labels: words such as ``end`` have a
    meaning in Mermaid's syntax.
    """
    ordered = topological_order(nodes)
    names = {node.id: f"n{index}" for index, node in enumerate(ordered)}
    lines = ["flowchart TD"]
    for node in ordered:
        before, after = ("{{", "}}") if node.gate else ("[", "]")
        label = _escaped(node.id)
        label += f"<br/>{_escaped(node.kind)}" if node.kind != node.id else ""
        lines.append(f'    {names[node.id]}{before}"{label}"{after}')
    for node_id, upstream in direct_upstream(ordered).items():
        lines += [f"    {names[other]} --> {names[node_id]}" for other in upstream]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """Replaces special characters by Mermaid's entities, which have no ``&``."""
    return _SPECIAL.sub(lambda sign: f"#{ord(sign[0])};", text)
