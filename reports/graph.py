"""The graph of a pipeline: its order and layers, as text and as SVG.

It knows ids and edges only, so it holds any TFX pipeline, and imports nothing of TFX.

The SVG has a layered layout: the layer of a node is the longest path to it, its place
there the mean of the nodes above it. A line that crosses a layer has a place there as a
node has, and bends only between layers, so that none crosses a node. It contains no
scripts, fonts, links or ids, so it opens offline, and a page may contain several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import pairwise
from statistics import fmean

from markupsafe import Markup
from rich.cells import cell_len

from reports import formats
from reports.charts.svg import number, tag
from reports.environment import inline

_NODE_HEIGHT = 44.0
_LAYER_GAP = 52.0
_SLOT_GAP = 22.0
_MARGIN = 20.0
_ARROW = 7.0
_PADDING = 18.0
_SWEEPS = 4
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


@dataclass(eq=False)
class _Slot:
    """The place of a node, or of a line that passes a layer: ``node`` is None."""

    node: GraphNode | None
    layer: int
    width: float = 2.0
    facts: str = ""
    x: float = 0.0
    above: list[_Slot] = field(default_factory=list)
    below: list[_Slot] = field(default_factory=list)

    @property
    def top(self) -> float:
        return _MARGIN + self.layer * (_NODE_HEIGHT + _LAYER_GAP)


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
    facts = {node.id: _facts(node) for node in ordered}
    labels = {x: f"{x} [{text}]" if text else x for x, text in facts.items()}
    width = max(map(cell_len, labels.values()), default=0)
    lines = []
    for node in ordered:
        label, waits = labels[node.id], ", ".join(direct[node.id])
        implied = [x for x in dict.fromkeys(node.upstream) if x not in direct[node.id]]
        waits += f" ({', '.join(implied)})" if implied else ""
        padding = " " * (width - cell_len(label))
        lines.append(f"{label}{padding}  after {waits}" if waits else label)
    return "\n".join(lines)


def as_svg(
    nodes: Sequence[GraphNode],
    states: Mapping[str, str] | None = None,
    *,
    styled: bool = True,
) -> str:
    """Returns one ``<svg>`` element, with a light and a dark colour scheme.

    Gates are rounded. Edges that a longer path implies are not drawn; the ``<title>``
    of a node has all that it waits for.

    Args:
      nodes: of the graph, in any order.
      states: by node id, as ``sluice.record.parts.NodeState``: named and coloured.
      styled: whether it has its own style sheet. A page whose content-security policy
        forbids that has the rules for ``.sluice-graph`` in its own.
    """
    states = states or {}
    rows = _lay_out(nodes, states)
    slots = [slot for row in rows for slot in row]
    width = max((slot.x + slot.width / 2 for slot in slots), default=0.0) + _MARGIN
    height = 2 * _MARGIN + len(rows) * (_NODE_HEIGHT + _LAYER_GAP) - _LAYER_GAP
    name = f"Graph of {len(nodes)} node{'' if len(nodes) == 1 else 's'}"
    page = [
        tag("style", Markup(inline("graph.css.j2"))),
        tag("rect", class_="page", width=width, height=height),
    ]
    lines = (_line(slot, lower) for slot in slots for lower in slot.below)
    drawn = (_node(slot, slot.node, states) for slot in slots if slot.node)
    return tag(
        "svg",
        tag("title", name),
        *(page if styled else ()),
        *lines,
        *drawn,
        xmlns="http://www.w3.org/2000/svg",
        class_="sluice-graph",
        width=width,
        height=height,
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="graphics-document",
        aria_label=name,
    )


def _lay_out(
    nodes: Sequence[GraphNode], states: Mapping[str, str]
) -> list[list[_Slot]]:
    """Returns the slots of each layer from left to right, linked and placed."""
    ordered = topological_order(nodes)
    layer, slots = layers(ordered), {}
    rows: list[list[_Slot]] = [[] for _ in range(1 + max(layer.values(), default=-1))]

    for node in ordered:
        facts = _facts(node, states.get(node.id))
        width = max(_text_width(node.id, _ID_SIZE), _text_width(facts, _FACT_SIZE))
        slot = _Slot(node, layer[node.id], round(width + 2 * _PADDING), facts)
        rows[slot.layer].append(slot)
        slots[node.id] = slot
    for node_id, upstream in direct_upstream(ordered).items():
        for upper in (slots[other] for other in upstream):
            passed = [_Slot(None, x) for x in range(upper.layer + 1, layer[node_id])]
            for slot in passed:
                rows[slot.layer].append(slot)
            for one, next_ in pairwise([upper, *passed, slots[node_id]]):
                one.below.append(next_)
                next_.above.append(one)
    _place(rows)
    return rows


def _place(rows: Sequence[list[_Slot]]) -> None:
    """Sorts each layer by the mean of the nodes above, and sets ``x`` of each slot."""
    for row in rows:
        row.sort(key=lambda slot: fmean(x.x for x in slot.above or [slot]))
        _spread(row, [fmean(x.x for x in slot.above or [slot]) for slot in row])
    for _ in range(_SWEEPS):
        for row in reversed(rows):
            _spread(row, [fmean(x.x for x in slot.below or [slot]) for slot in row])
        for row in rows:
            _spread(row, [fmean(x.x for x in slot.above or [slot]) for slot in row])
    slots = [slot for row in rows for slot in row]
    left = min((slot.x - slot.width / 2 for slot in slots), default=0.0) - _MARGIN
    for slot in slots:
        slot.x = round(slot.x - left)


def _spread(row: Sequence[_Slot], wanted: Sequence[float]) -> None:
    """Places slots close to where they are wanted, in their order, with gaps."""
    right = float("-inf")
    for slot, x in zip(row, wanted, strict=True):
        slot.x = max(x, right + slot.width / 2)
        right = slot.x + slot.width / 2 + _SLOT_GAP
    beyond = fmean(slot.x for slot in row) - fmean(wanted)
    for slot in row:
        slot.x -= beyond


def _line(upper: _Slot, lower: _Slot) -> Markup:
    start, end = upper.top + _NODE_HEIGHT, lower.top
    bend, tip = (start + end) / 2, end if lower.node is None else end - _ARROW
    path = f"M{upper.x:g} {start:g}C{upper.x:g} {bend:g} {lower.x:g} {bend:g} "
    path += f"{lower.x:g} {tip:g}"
    if lower.node is None:
        return tag("path", class_="edge", d=f"{path}V{end + _NODE_HEIGHT:g}")
    half = _ARROW / 2
    arrow = f"M{lower.x:g} {end:g}l{-half:g} {-_ARROW:g}h{_ARROW:g}z"
    edge = tag("path", class_="edge", d=path)
    return edge + tag("path", class_="arrow", d=arrow)


def _node(slot: _Slot, node: GraphNode, states: Mapping[str, str]) -> Markup:
    waits = ", ".join(dict.fromkeys(node.upstream)) or "nothing"
    facts = f": {slot.facts}" if slot.facts else ""
    size = {"width": slot.width, "height": _NODE_HEIGHT, "rx": 22 if node.gate else 6}
    top = slot.top
    place = {"x": slot.x, "text_anchor": "middle"}
    return tag(
        "g",
        tag("title", f"{node.id}{facts}; waits for {waits}"),
        tag("rect", x=slot.x - slot.width / 2, y=top, **size),
        tag("text", node.id, class_="id", y=top + (19 if slot.facts else 27), **place),
        tag("text", slot.facts, class_="fact", y=top + 34, **place)
        if slot.facts
        else None,
        class_=f"node {states.get(node.id, '')}".strip(),
        role="graphics-symbol",
    )


def _facts(node: GraphNode, state: str | None = None) -> str:
    facts = [node.kind] if node.kind != node.id else []
    facts += ["gate"] if node.gate else []
    facts += [formats.state(state)] if state else []
    return ", ".join(facts)


def _text_width(text: str, size: int) -> float:
    return cell_len(text) * size * _CELL_WIDTH
