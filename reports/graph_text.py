"""Renders a graph as text: one row per node, lines from above.

Only direct edges are drawn; edges implied by a longer path are listed in parentheses.
The text is ASCII, so it looks the same in any terminal, log file or ticket.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len

from reports.graph import GraphNode, direct_upstream, topological_order

_MIN_WAITS_WIDTH = 24


def as_text(
    nodes: Sequence[GraphNode],
    states: Mapping[str, str] | None = None,
    width: int | None = None,
) -> str:
    r"""Returns the graph as lines of text, without a newline at the end.

    ``*`` is a node with downstream nodes, ``o`` one without. The lines that a row
    touches come from the node's upstream nodes: ``+`` continues to later nodes, ``'``
    ends here, and ``-|-`` crosses an unrelated line::

        *    TFRecordGen
        *    StatisticsGen     waits for TFRecordGen
        | *  ImportSchemaGen
        o-'  ExampleValidator  waits for StatisticsGen, ImportSchemaGen

    Args:
      nodes: of the graph, in any order.
      states: by node id, as ``sluice.record.parts.NodeState``; shown where given.
      width: cells in which what a node waits for is broken; None never breaks it.

    Raises:
      ValueError: the nodes are not a graph; see ``topological_order``.
    """
    ordered = topological_order(nodes)
    direct = direct_upstream(ordered)
    rows = _draw(ordered, direct)
    labels = [_label(node) for node in ordered]
    states = states or {}
    state_words = [states.get(node.id, "").replace("_", " ") for node in ordered]
    columns = [[row for row, _ in rows], labels, state_words]
    heads = [_pad(column) for column in columns if any(column)]
    below = [row for _, row in rows]
    lines: list[str] = []
    for index, node in enumerate(ordered):
        head = "  ".join(column[index] for column in heads) + "  "
        room = max(width - cell_len(head), _MIN_WAITS_WIDTH) if width else 0
        first, *more = _waits(node, direct[node.id], room)
        lines.append((head + first).rstrip())
        lines += [below[index].ljust(cell_len(head)) + line for line in more]
    if any(set(node.upstream) - set(direct[node.id]) for node in ordered):
        lines += ["", "(in parentheses: not drawn, as the lines imply it)"]
    return "\n".join(lines)


def _draw(
    ordered: Sequence[GraphNode], direct: Mapping[str, tuple[str, ...]]
) -> list[tuple[str, str]]:
    """Returns, per node, its row of the drawing and the lines that continue below."""
    last_use = {upstream: node.id for node in ordered for upstream in direct[node.id]}
    lanes: list[str | None] = []
    rows = []
    for node in ordered:
        touched = [lanes.index(upstream) for upstream in direct[node.id]]
        ending = {lane for lane in touched if last_use[str(lanes[lane])] == node.id}
        if not ending and None not in lanes:
            lanes.append(None)
        own = min(ending) if ending else lanes.index(None)
        goes_on = node.id in last_use
        row = _row(lanes, own, set(touched), ending, "*" if goes_on else "o")
        for lane in ending:
            lanes[lane] = None
        lanes[own] = node.id if goes_on else None
        while lanes and lanes[-1] is None:
            lanes.pop()
        rows.append((row, " ".join("|" if lane else " " for lane in lanes)))
    return rows


def _row(
    lanes: Sequence[object], own: int, touched: set[int], ending: set[int], mark: str
) -> str:
    left, right = min({own, *touched}), max({own, *touched})
    cells = []
    for lane, source in enumerate(lanes):
        inside = left <= lane <= right
        if lane == own:
            cell = mark
        elif lane in touched:
            cell = "'" if lane in ending else "+"
        elif source is not None:
            cell = "|"
        else:
            cell = "-" if inside else " "
        cells.append(cell + ("-" if inside and lane < right else " "))
    return "".join(cells).rstrip()


def _label(node: GraphNode) -> str:
    facts = [node.kind] if node.kind != node.id else []
    facts += ["gate"] if node.gate else []
    return f"{node.id} [{', '.join(facts)}]" if facts else node.id


def _waits(node: GraphNode, direct: Sequence[str], room: int) -> list[str]:
    """Returns at least one line; more where ``room`` is not 0 and too small."""
    if not direct:
        return [""]
    text = f"waits for {', '.join(direct)}"
    implied = [upstream for upstream in node.upstream if upstream not in direct]
    if implied:
        text += f" ({', '.join(dict.fromkeys(implied))})"
    if not room:
        return [text]
    whole: Any = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.wrap(text, room, subsequent_indent="  ", **whole)


def _pad(column: Sequence[str]) -> list[str]:
    width = max(map(cell_len, column), default=0)
    return [text + " " * (width - cell_len(text)) for text in column]
