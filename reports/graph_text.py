"""Renders a graph as text: a table for a terminal, or a Mermaid flowchart."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len

from reports.graph import GraphNode, direct_upstream, topological_order

# All that may mean something to Mermaid or to the Markdown in its labels.
_SPECIAL = re.compile(r"[^\w .,-]")


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

    Gates are hexagons. Ids are only used as labels: words such as ``end`` have a
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
