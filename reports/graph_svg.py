"""Renders a graph as SVG, for a file or inline in an HTML page.

It contains no scripts, fonts, links or ids, so it opens offline, and a page may contain
several.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from reports.environment import inline
from reports.graph import GraphNode, topological_order
from reports.graph_layout import LAYER_GAP, MARGIN, NODE_HEIGHT, Link, Slot, lay_out
from sluice.record.states import NODE_STATES

_ARROW = 7.0
_GATE_POINT = 12.0
# Monospaced fonts are 0.55 to 0.602 em wide; a little more, so that no text is clipped.
_CELL_WIDTH = 0.62
_ID_SIZE = 13
_FACT_SIZE = 11
_TEXT_PADDING = 14.0
_LEGEND = "faint lines: implied by the others"


def as_svg(
    nodes: Sequence[GraphNode],
    states: Mapping[str, str] | None = None,
    *,
    styled: bool = True,
) -> str:
    """Returns one ``<svg>`` element, with a light and a dark colour scheme.

    Gates are hexagons. Edges implied by a longer path are faint, with a note below the
    graph. The ``<title>`` of a node has its kind and its upstream nodes.

    Args:
      nodes: of the graph, in any order.
      states: by node id, as ``sluice.record.parts.NodeState``: named and coloured.
      styled: whether it has its own style sheet. A page whose content-security policy
        forbids that has the rules for ``.sluice-graph`` in its own.

    Raises:
      ValueError: the nodes are not a graph; see ``topological_order``.
    """
    ordered = topological_order(nodes)
    states = states or {}
    facts = {node.id: _facts(node, states.get(node.id)) for node in ordered}
    rows = lay_out(
        ordered, {node.id: _node_width(node, facts[node.id]) for node in ordered}
    )
    links = [link for row in rows for slot in row for link in slot.below]
    legend = "" if all(link.direct for link in links) else _LEGEND
    width = max(
        [slot.x + slot.width / 2 for row in rows for slot in row]
        + [_text_width(legend, _FACT_SIZE) + MARGIN]
    )
    height = 2 * MARGIN + len(rows) * (NODE_HEIGHT + LAYER_GAP) - LAYER_GAP
    height += 2 * _FACT_SIZE if legend else 0
    svg = _canvas(round(width + MARGIN), round(height), len(ordered), styled)
    for link in sorted(links, key=lambda link: link.direct):
        _draw_link(svg, link)
    for slot in (slot for row in rows for slot in row if not slot.is_lane):
        _draw_node(svg, slot, facts[slot.source.id], states.get(slot.source.id))
    if legend:
        place = {"x": _number(MARGIN), "y": _number(height - MARGIN)}
        ET.SubElement(svg, "text", place | {"class": "fact"}).text = legend
    ET.indent(svg)
    return ET.tostring(svg, encoding="unicode")


def _canvas(width: int, height: int, count: int, styled: bool) -> ET.Element:
    name = f"Graph of {count} node{'' if count == 1 else 's'}"
    svg = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": "sluice-graph",
            "width": str(width),
            "height": str(height),
            "viewBox": f"0 0 {width} {height}",
            "role": "graphics-document",
            "aria-label": name,
        },
    )
    ET.SubElement(svg, "title").text = name
    if styled:
        ET.SubElement(svg, "style").text = inline("graph.css.j2")
        ET.SubElement(
            svg, "rect", {"class": "page", "width": str(width), "height": str(height)}
        )
    return svg


def _draw_link(svg: ET.Element, link: Link) -> None:
    upper, lower = link.upper, link.lower
    start, end = upper.top + NODE_HEIGHT, lower.top
    path = f"M{_number(upper.x)} {_number(start)}"
    tip = end if lower.is_lane else end - _ARROW
    bend = _number((start + end) / 2)
    path += f"C{_number(upper.x)} {bend} {_number(lower.x)} {bend} "
    path += f"{_number(lower.x)} {_number(tip)}"
    if lower.is_lane:
        path += f"V{_number(end + NODE_HEIGHT)}"
    kind = "direct" if link.direct else "implied"
    ET.SubElement(svg, "path", {"class": f"edge {kind}", "d": path})
    if not lower.is_lane:
        half = _ARROW / 2
        arrow = f"M{_number(lower.x)} {_number(end)}l{-half} {-_ARROW}h{_ARROW}z"
        ET.SubElement(svg, "path", {"class": f"arrow {kind}", "d": arrow})


def _draw_node(svg: ET.Element, slot: Slot, facts: str, state: str | None) -> None:
    node = slot.source
    group = ET.SubElement(
        svg,
        "g",
        {
            "class": f"node {state}" if state in NODE_STATES else "node",
            "role": "graphics-symbol",
        },
    )
    kind = f" ({node.kind})" if node.kind != node.id else ""
    waits = ", ".join(dict.fromkeys(node.upstream)) or "nothing"
    title = f"{node.id}{kind}{', a gate' if node.gate else ''}"
    title += f": {state.replace('_', ' ')}" if state else ""
    ET.SubElement(group, "title").text = f"{title}; waits for {waits}"
    left, right = slot.x - slot.width / 2, slot.x + slot.width / 2
    top, bottom = slot.top, slot.top + NODE_HEIGHT
    if node.gate:
        point, middle = _GATE_POINT, top + NODE_HEIGHT / 2
        corners = [(left, middle), (left + point, top), (right - point, top)]
        corners += [(right, middle), (right - point, bottom), (left + point, bottom)]
        points = " ".join(f"{_number(x)},{_number(y)}" for x, y in corners)
        ET.SubElement(group, "polygon", {"points": points})
    else:
        box = {"x": left, "y": top, "width": slot.width, "height": NODE_HEIGHT}
        attributes = {name: _number(value) for name, value in box.items()}
        ET.SubElement(group, "rect", attributes | {"rx": "6"})
    centre = {"x": _number(slot.x), "text-anchor": "middle"}
    place = {"y": _number(top + (19 if facts else 27)), "class": "id"}
    ET.SubElement(group, "text", centre | place).text = node.id
    if facts:
        place = {"y": _number(top + 34), "class": "fact"}
        ET.SubElement(group, "text", centre | place).text = facts


def _facts(node: GraphNode, state: str | None) -> str:
    facts = [node.kind] if node.kind != node.id else []
    facts += ["gate"] if node.gate else []
    facts += [state.replace("_", " ")] if state else []
    return ", ".join(facts)


def _node_width(node: GraphNode, facts: str) -> float:
    text = max(_text_width(node.id, _ID_SIZE), _text_width(facts, _FACT_SIZE))
    return round(text + 2 * _TEXT_PADDING + (_GATE_POINT if node.gate else 0))


def _text_width(text: str, size: int) -> float:
    return cell_len(text) * size * _CELL_WIDTH


def _number(value: float) -> str:
    return f"{value:g}"
