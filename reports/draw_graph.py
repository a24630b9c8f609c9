"""The graph of a pipeline: its order and layers, as text and as SVG.

It knows ids and edges only, so it holds any TFX pipeline, and imports nothing of TFX.

The SVG has a layered layout on a grid: the row of a node is the longest path to it, its
column that of the first node above it, if it is free. A line passes other rows between
columns, so that it crosses no node. It contains no scripts, fonts, links or ids, so it
opens offline, and a page may contain several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import NamedTuple

from markupsafe import Markup
from rich.cells import cell_len

from reports import formats
from reports.charts.svg import number, tag

_NODE_HEIGHT = 44.0
_ROW_GAP = 52.0
_COLUMN_GAP = 24.0
_LINE_GAP = 4.0
_MARGIN = 20.0
_ARROW = 7.0
_PADDING = 18.0
# Monospaced fonts are 0.55 to 0.602 em wide; a little more, so that no text is clipped.
_CELL_WIDTH = 0.62
_ID_SIZE, _FACT_SIZE = 13, 11


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


class _Box(NamedTuple):
    """The place of a node; all boxes are equally large."""

    row: int
    column: int
    width: float

    @property
    def left(self) -> float:
        return _MARGIN + self.column * (self.width + _COLUMN_GAP)

    @property
    def middle(self) -> float:
        return self.left + self.width / 2

    @property
    def top(self) -> float:
        return _MARGIN + self.row * (_NODE_HEIGHT + _ROW_GAP)


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
    """Returns a line per node, after those that it waits for."""
    ordered = topological_order(nodes)
    direct = direct_upstream(ordered)
    facts = {node.id: _facts(node) for node in ordered}
    labels = {x: f"{x} [{text}]" if text else x for x, text in facts.items()}
    width = max(map(len, labels.values()), default=0)
    lines = []
    for node_id, label in labels.items():
        waits = ", ".join(direct[node_id])
        lines.append(f"{label:{width}}  after {waits}" if waits else label)
    return "\n".join(lines)


def as_svg(
    nodes: Sequence[GraphNode],
    states: Mapping[str, str] | None = None,
) -> Markup:
    """Returns one ``<svg>`` element, for a page with the rules of ``.sluice-graph``.

    Gates are rounded. Edges that a longer path implies are not drawn; the ``<title>``
    of a node has all that it waits for.

    Args:
      nodes: of the graph, in any order.
      states: by node id, as ``sluice.record.parts.NodeState``: named and coloured.
    """
    states = states or {}
    ordered = topological_order(nodes)
    direct = direct_upstream(ordered)
    facts = {node.id: _facts(node, states.get(node.id)) for node in ordered}
    boxes = _boxes(ordered, direct, facts)
    right = max((box.left + box.width for box in boxes.values()), default=0.0)
    bottom = max((box.top + _NODE_HEIGHT for box in boxes.values()), default=0.0)
    width, height = right + _MARGIN, bottom + _MARGIN
    name = f"Graph of {formats.plural(len(nodes), 'node')}"
    lines = (
        _line(boxes[x], boxes[node.id]) for node in ordered for x in direct[node.id]
    )
    drawn = (_node(x, boxes[x.id], facts[x.id], states.get(x.id)) for x in ordered)
    return tag(
        "svg",
        tag("title", name),
        *lines,
        *drawn,
        class_="sluice-graph",
        width=width,
        height=height,
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="graphics-document",
        aria_label=name,
    )


def _boxes(
    ordered: Sequence[GraphNode],
    direct: Mapping[str, Sequence[str]],
    facts: Mapping[str, str],
) -> dict[str, _Box]:
    """Returns where each node is drawn, by its id."""
    texts = [(x.id, _ID_SIZE) for x in ordered]
    texts += [(text, _FACT_SIZE) for text in facts.values()]
    widest = max((cell_len(text) * size for text, size in texts), default=0)
    width = round(widest * _CELL_WIDTH + 2 * _PADDING)
    boxes: dict[str, _Box] = {}
    rows = layers(ordered)
    taken: set[tuple[int, int]] = set()
    # In each row, nodes without upstream stand beside the others.
    for node in sorted(ordered, key=lambda x: (rows[x.id], not x.upstream)):
        row = rows[node.id]
        column = min((boxes[x].column for x in direct[node.id]), default=0)
        while (row, column) in taken:
            column += 1
        taken.add((row, column))
        boxes[node.id] = _Box(row, column, width)
    return boxes


def _line(upper: _Box, lower: _Box) -> Markup:
    x, y, end = upper.middle, upper.top + _NODE_HEIGHT, lower.top - _ROW_GAP
    path = f"M{x:g} {y:g}"
    if y < end:
        # Lines from other rows beside the same column have places of their own.
        beside = lower.left - _LINE_GAP * (1 + upper.row % 4)
        path += f"{_curve(x, y, beside, y + _ROW_GAP)}V{end:g}"
        x = beside
    path += _curve(x, end, lower.middle, lower.top - _ARROW)
    half = _ARROW / 2
    arrow = f"M{lower.middle:g} {lower.top:g}l{-half:g} {-_ARROW:g}h{_ARROW:g}z"
    edge = tag("path", class_="edge", d=path)
    return edge + tag("path", class_="arrow", d=arrow)


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    bend = (y + to_y) / 2
    return f"C{x:g} {bend:g} {to_x:g} {bend:g} {to_x:g} {to_y:g}"


def _node(node: GraphNode, box: _Box, facts: str, state: str | None) -> Markup:
    waits = ", ".join(dict.fromkeys(node.upstream)) or "nothing"
    title = f"{node.id}{facts and ': '}{facts}; waits for {waits}"
    size = {"width": box.width, "height": _NODE_HEIGHT, "rx": 22 if node.gate else 6}
    place = {"x": box.middle, "text_anchor": "middle"}
    return tag(
        "g",
        tag("title", title),
        tag("rect", x=box.left, y=box.top, **size),
        tag("text", node.id, class_="id", y=box.top + (19 if facts else 27), **place),
        tag("text", facts, class_="fact", y=box.top + 34, **place) if facts else None,
        class_=f"node {state or ''}".strip(),
        role="graphics-symbol",
    )


def _facts(node: GraphNode, state: str | None = None) -> str:
    facts = [node.kind] if node.kind != node.id else []
    facts += ["gate"] if node.gate else []
    facts += [formats.state(state)] if state else []
    return ", ".join(facts)
