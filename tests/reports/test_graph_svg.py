"""SVG drawings of graphs: overlaps, edges, text and colours."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass

import pytest

from reports.graph import GraphNode, topological_order
from reports.graph_svg import as_svg
from sluice.record.parts import NodeState

pytestmark = pytest.mark.unit

SVG = "{http://www.w3.org/2000/svg}"
CURVE = re.compile(r"M(\S+) (\S+)C(\S+) (\S+) (\S+) (\S+) (\S+) ([\d.]+)(?:V(\S+))?")


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float


def chain(count: int) -> list[GraphNode]:
    return [
        GraphNode(f"n{i}", "Kind", (f"n{i - 1}",) if i else ()) for i in range(count)
    ]


def fan(count: int) -> list[GraphNode]:
    """One source, that many trainers, one node that waits for all of them."""
    ids = tuple(f"Trainer.variant-{i}" for i in range(count))
    return [
        GraphNode("Source", "Source", ()),
        *(GraphNode(node_id, "Trainer", ("Source",)) for node_id in ids),
        GraphNode("Collect", "Collect", ids),
    ]


def any_graph(count: int, seed: int) -> list[GraphNode]:
    chance = random.Random(seed)
    nodes: list[GraphNode] = []
    for i in range(count):
        upstream = chance.sample(nodes, min(i, chance.choice([0, 1, 1, 2, 2, 3])))
        ids = tuple(node.id for node in upstream)
        name = f"N{i}" + ".x" * chance.randint(0, 12)
        nodes.append(GraphNode(name, "K", ids, gate=chance.random() < 0.1))
    return nodes


GRAPHS = [chain(1), chain(13), fan(20), any_graph(60, 1), any_graph(60, 2)]


def boxes(svg: ET.Element) -> dict[str, Box]:
    """Returns each node's box by its id."""
    found = {}
    for group in svg.findall(f"{SVG}g"):
        name = group.findall(f"{SVG}text")[0].text or ""
        rect = group.find(f"{SVG}rect")
        if rect is not None:
            x, y, width, height = (
                float(rect.attrib[key]) for key in ("x", "y", "width", "height")
            )
            found[name] = Box(x, y, x + width, y + height)
        else:
            points = group.find(f"{SVG}polygon").attrib["points"]  # type: ignore[union-attr]
            xs, ys = zip(
                *(map(float, point.split(",")) for point in points.split()),
                strict=True,
            )
            found[name] = Box(min(xs), min(ys), max(xs), max(ys))
    return found


def lines(svg: ET.Element) -> list[list[tuple[float, float]]]:
    """Returns points along each edge's path."""
    found = []
    for path in svg.findall(f"{SVG}path"):
        if not path.attrib["class"].startswith("edge"):
            continue
        match = CURVE.fullmatch(path.attrib["d"])
        assert match, path.attrib["d"]
        x0, y0, x1, y1, x2, y2, x3, y3 = (float(match[i]) for i in range(1, 9))
        points = []
        for step in range(41):
            t = step / 40
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            xs, ys = (x0, x1, x2, x3), (y0, y1, y2, y3)
            points.append(
                (
                    sum(w * x for w, x in zip(weights, xs, strict=True)),
                    sum(w * y for w, y in zip(weights, ys, strict=True)),
                )
            )
        if match[9]:
            end = float(match[9])
            points += [(x3, y3 + (end - y3) * step / 10) for step in range(11)]
        found.append(points)
    return found


@pytest.mark.parametrize("nodes", GRAPHS)
def test_boxes_do_not_overlap_and_lie_on_the_page(nodes):
    svg = ET.fromstring(as_svg(nodes))
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
    placed = list(boxes(svg).values())
    assert len(placed) == len(nodes)
    for i, box in enumerate(placed):
        assert 0 <= box.left < box.right <= width
        assert 0 <= box.top < box.bottom <= height
        for other in placed[:i]:
            apart_x = box.right < other.left or other.right < box.left
            apart_y = box.bottom < other.top or other.bottom < box.top
            assert apart_x or apart_y


@pytest.mark.parametrize("nodes", GRAPHS)
def test_no_edge_runs_through_a_node(nodes):
    svg = ET.fromstring(as_svg(nodes))
    placed = boxes(svg)
    for points in lines(svg):
        for x, y in points:
            for name, box in placed.items():
                inside = box.left < x < box.right and box.top < y < box.bottom
                assert not inside, f"an edge at {x}, {y} runs through {name}"


@pytest.mark.parametrize("nodes", GRAPHS)
def test_every_edge_can_be_followed(nodes):
    """From below its upstream node, line by line, to the top of the node."""
    svg = ET.fromstring(as_svg(nodes))
    placed = boxes(svg)
    steps: dict[tuple[float, float], set[tuple[float, float]]] = {}
    for points in lines(svg):
        steps.setdefault(points[0], set()).add(points[-1])
    for node in nodes:
        box = placed[node.id]
        for upstream in node.upstream:
            above = placed[upstream]
            assert above.bottom < box.top
            reached = {((above.left + above.right) / 2, above.bottom)}
            while (
                more := set().union(*(steps.get(at, set()) for at in reached)) - reached
            ):
                reached |= more
            middle = (box.left + box.right) / 2
            assert any(
                abs(x - middle) < 1 and 0 <= box.top - y < 10 for x, y in reached
            ), f"{upstream} -> {node.id}"


def test_a_wide_layer_is_wrapped():
    assert float(ET.fromstring(as_svg(fan(20))).attrib["width"]) < 1600


@pytest.mark.parametrize(
    "name", ["x" * 200, "\u65e5" * 40, "i"], ids=["long", "wide", "short"]
)
def test_a_box_is_wide_enough_for_any_monospaced_font(name):
    svg = ET.fromstring(as_svg([GraphNode(name, "k" * 5, ())]))
    box = boxes(svg)[name]
    em = 13 * (1 if name[0] == "\u65e5" else 0.602)
    assert box.right - box.left >= len(name) * em + 10


def test_nodes_have_titles_with_kind_and_upstream_nodes():
    nodes = [
        GraphNode("Gen", "CsvExampleGen", ()),
        GraphNode("Gate", "Gate", ("Gen",), gate=True),
    ]
    svg = ET.fromstring(as_svg(nodes, {"Gen": "ran", "Gate": "not_reached"}))
    assert svg.attrib["aria-label"] == "Graph of 2 nodes"
    groups = svg.findall(f"{SVG}g")
    assert [group.findtext(f"{SVG}title") for group in groups] == [
        "Gen (CsvExampleGen): ran; waits for nothing",
        "Gate, a gate: not reached; waits for Gen",
    ]
    assert [group.attrib["class"] for group in groups] == [
        "node ran",
        "node not_reached",
    ]
    texts = [text.text for group in groups for text in group.findall(f"{SVG}text")]
    assert texts == ["Gen", "CsvExampleGen, ran", "Gate", "gate, not reached"]
    assert groups[0].find(f"{SVG}rect") is not None
    assert groups[1].find(f"{SVG}polygon") is not None


def test_implied_edges_are_drawn_faint_with_a_title():
    nodes = [*chain(2), GraphNode("n2", "Kind", ("n0", "n1"))]
    text = as_svg(nodes)
    assert text.count('class="edge direct"') == 2
    assert text.count('class="edge implied"') == 2
    assert "faint lines: implied by the others" in text
    assert "faint lines" not in as_svg(chain(3))


def test_there_are_no_scripts_or_external_resources():
    hostile = '"><script>alert(1)</script>&'
    text = as_svg([GraphNode(hostile, "K", ())])
    svg = ET.fromstring(text)
    assert hostile in boxes(svg)
    assert "<script" not in text
    assert not re.search(r"url\(|href|@import|@font-face|\son\w+=|\sid=", text)
    assert text.count("http") == 1  # the namespace


def test_every_state_has_a_colour_in_light_and_in_dark():
    style = ET.fromstring(as_svg([])).findtext(f"{SVG}style") or ""
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    for state in NodeState.__args__:  # type: ignore[attr-defined]
        assert f".{state} rect" in light
        assert f".{state} rect" in dark


def test_the_drawing_is_deterministic():
    nodes = topological_order(any_graph(30, 3))
    assert as_svg(nodes) == as_svg(nodes)
