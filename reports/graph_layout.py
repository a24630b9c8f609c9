"""Layered graph layout (Sugiyama).

Nodes are sorted into layers, ordered by barycentre and placed by a linear program. All
edges of a node that reach beyond the next layer share one lane, which has a slot in
every layer that it crosses. Edges bend only between layers, so none crosses a node.
Lengths are in pixels.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from statistics import fmean

from reports.graph import GraphNode, direct_upstream, layers

NODE_HEIGHT = 44.0
LAYER_GAP = 52.0
MARGIN = 20.0
_SLOT_GAP = 22.0
_LANE_WIDTH = 2.0
_MAX_PER_LAYER = 6
_SWEEPS = 24
_PLACE_COST = 0.001


@dataclass(eq=False)
class Slot:
    """The place of a node, or of its lane, in a layer. Lengths are in pixels."""

    source: GraphNode
    is_lane: bool
    layer: int
    width: float
    x: float = 0.0
    above: list[Link] = field(default_factory=list)
    below: list[Link] = field(default_factory=list)

    @property
    def top(self) -> float:
        return MARGIN + self.layer * (NODE_HEIGHT + LAYER_GAP)


@dataclass(eq=False)
class Link:
    """A line between two layers; ``direct`` if a direct edge uses it."""

    upper: Slot
    lower: Slot
    direct: bool


def lay_out(
    ordered: Sequence[GraphNode], widths: Mapping[str, float]
) -> list[list[Slot]]:
    """Returns the slots of each layer from left to right, linked and placed.

    Args:
      ordered: the nodes in topological order.
      widths: of the nodes, by their ids.
    """
    rows = _slots(ordered, widths)
    _order(rows)
    _place(rows)
    return rows


def _slots(
    ordered: Sequence[GraphNode], widths: Mapping[str, float]
) -> list[list[Slot]]:
    """Returns the linked slots of each layer, in topological order."""
    direct = direct_upstream(ordered)
    rows: list[list[Slot]] = []
    lanes: dict[str, list[Slot]] = {}
    for layer, members in enumerate(layers(ordered, _MAX_PER_LAYER)):
        rows.append([])
        for node in members:
            slot = Slot(node, False, layer, widths[node.id])
            for upstream in dict.fromkeys(node.upstream):
                lane = lanes[upstream]
                while lane[-1].layer < layer - 1:
                    passing = lane[-1].layer + 1
                    more = Slot(lane[0].source, True, passing, _LANE_WIDTH)
                    _link(lane[-1], more, False)
                    lane.append(more)
                    rows[passing].append(more)
                used = lane[: layer - lane[0].layer]
                _link(used[-1], slot, upstream in direct[node.id])
                if upstream in direct[node.id]:
                    for passed in used[1:]:
                        passed.above[0].direct = True
            lanes[node.id] = [slot]
            rows[layer].append(slot)
    return rows


def _link(upper: Slot, lower: Slot, direct: bool) -> None:
    link = Link(upper, lower, direct)
    upper.below.append(link)
    lower.above.append(link)


def _order(rows: list[list[Slot]]) -> None:
    """Sorts layers by barycentre sweeps; keeps the order with the fewest crossings."""
    best = [list(row) for row in rows]
    fewest = _crossings(rows)
    for sweep in range(_SWEEPS):
        downward = sweep % 2 == 0
        for row in rows if downward else reversed(rows):
            index = {slot: i for line in rows for i, slot in enumerate(line)}

            def centre(slot: Slot, index=index, downward=downward) -> float:
                near = [link.lower for link in slot.below]
                if downward:
                    near = [link.upper for link in slot.above]
                return fmean(index[other] for other in near or [slot])

            row.sort(key=centre)
            if downward:
                row[:] = [
                    slot
                    for _, group in groupby(row, key=centre)
                    for slot in _lane_in_the_middle(list(group))
                ]
        crossings = _crossings(rows)
        if crossings < fewest or (downward and crossings == fewest):
            best, fewest = [list(row) for row in rows], crossings
    rows[:] = best


def _lane_in_the_middle(siblings: list[Slot]) -> list[Slot]:
    lanes = [slot for slot in siblings if slot.is_lane]
    nodes = [slot for slot in siblings if not slot.is_lane]
    half = len(nodes) // 2
    return [*nodes[:half], *lanes, *nodes[half:]]


def _crossings(rows: Sequence[Sequence[Slot]]) -> int:
    index = {slot: i for row in rows for i, slot in enumerate(row)}
    count = 0
    for row in rows:
        seen: list[int] = []
        for slot in row:
            ends = sorted(index[link.lower] for link in slot.below)
            count += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return count


def _place(rows: Sequence[Sequence[Slot]]) -> None:
    """Sets the centre ``x`` of each slot so that lines are as straight as possible.

    A linear program, as in Gansner et al., "A Technique for Drawing Directed Graphs"
    (1993), section 4: the least weighted sum of horizontal distances along the links,
    under the order and the gaps of each layer.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    slots = [slot for row in rows for slot in row]
    if not slots:
        return
    links = [link for slot in slots for link in slot.below]
    index = {slot: i for i, slot in enumerate(slots)}
    entries: list[tuple[int, int, float]] = []
    bounds: list[float] = []

    def at_most(bound: float, *terms: tuple[int, float]) -> None:
        entries.extend((len(bounds), column, factor) for column, factor in terms)
        bounds.append(bound)

    for number, link in enumerate(links):
        upper, lower = index[link.upper], index[link.lower]
        distance = len(slots) + number
        at_most(0, (upper, 1), (lower, -1), (distance, -1))
        at_most(0, (lower, 1), (upper, -1), (distance, -1))
    for row in rows:
        for left, right in pairwise(row):
            apart = (left.width + right.width) / 2 + _SLOT_GAP
            at_most(-apart, (index[left], 1), (index[right], -1))
    for slot in slots:
        at_most(-slot.width / 2 - MARGIN, (index[slot], -1))
    rows_, columns, factors = zip(*entries, strict=True)
    shape = (len(bounds), len(slots) + len(links))
    solved = linprog(
        [_PLACE_COST] * len(slots) + [_pull(link) for link in links],
        A_ub=coo_array((factors, (rows_, columns)), shape=shape),
        b_ub=bounds,
    )
    for slot, x in zip(slots, solved.x, strict=False):
        slot.x = round(x)


def _pull(link: Link) -> float:
    if link.upper.is_lane and link.lower.is_lane:
        return 8.0
    return 4.0 if link.direct else 1.0
