"""Renders a graph as a Mermaid flowchart.

Node ids are used only as labels: words such as ``end`` and characters such as ``-``
have a meaning in Mermaid's syntax.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from reports.graph import GraphNode, direct_upstream, topological_order
from sluice.record.states import NODE_STATES, NodeLook

# All that may mean something to Mermaid or to the Markdown in its labels.
_SPECIAL = re.compile(r"[^\w .,-]")
_GATE = ("{{", "}}")
_NODE = ("[", "]")


def as_mermaid(
    nodes: Sequence[GraphNode], states: Mapping[str, str] | None = None
) -> str:
    """Returns a ``flowchart TD``, without a newline at the end.

    Gates are hexagons. An edge implied by a longer path is dotted.

    Args:
      nodes: of the graph, in any order.
      states: by node id, as ``sluice.record.parts.NodeState``: named and coloured.

    Raises:
      ValueError: the nodes are not a graph; see ``topological_order``.
    """
    ordered = topological_order(nodes)
    direct = direct_upstream(ordered)
    names = {node.id: f"n{index}" for index, node in enumerate(ordered)}
    states = states or {}
    lines = ["flowchart TD"]
    for node in ordered:
        before, after = _GATE if node.gate else _NODE
        label = _label(node, states.get(node.id))
        lines.append(f'    {names[node.id]}{before}"{label}"{after}')
    for node in ordered:
        for upstream in dict.fromkeys(node.upstream):
            arrow = "-->" if upstream in direct[node.id] else "-.->"
            lines.append(f"    {names[upstream]} {arrow} {names[node.id]}")
    for state, look in NODE_STATES.items():
        members = [names[node.id] for node in ordered if states.get(node.id) == state]
        if members:
            lines.append(f"    classDef {state} {_style(look)}")
            lines.append(f"    class {','.join(members)} {state}")
    return "\n".join(lines)


def _label(node: GraphNode, state: str | None) -> str:
    facts = [node.kind] if node.kind != node.id else []
    facts += [state.replace("_", " ")] if state else []
    label = _escaped(node.id)
    return f"{label}<br/>{_escaped(', '.join(facts))}" if facts else label


def _style(look: NodeLook) -> str:
    fill, stroke = look.light
    dashes = ",stroke-dasharray:4" if look.dashed else ""
    return f"fill:{fill},stroke:{stroke},color:#1f2328{dashes}"


def _escaped(text: str) -> str:
    """Replaces special characters by Mermaid's entities, which have no ``&``."""
    return _SPECIAL.sub(lambda sign: f"#{ord(sign[0])};", text)
