"""Graphs of pipelines: order, layout, text and drawing."""

import random
import re
import xml.etree.ElementTree as ET

import pytest

from reports.draw_graph import (
    GraphNode,
    as_svg,
    as_text,
    direct_upstream,
    topological_order,
)

pytestmark = pytest.mark.unit

PIPELINE = [
    GraphNode("Gen", "CsvExampleGen", ()),
    GraphNode("Schema", "Schema", ()),
    GraphNode("my.gate", "my.gate", ("Gen",), gate=True),
    GraphNode("Trainer", "Trainer", ("Gen", "my.gate")),
    GraphNode("Evaluator", "Evaluator", ("Schema", "Trainer")),
]


def chain(count):
    return [
        GraphNode(f"n{i}", "Kind", (f"n{i - 1}",) if i else ()) for i in range(count)
    ]


def fan(count):
    """One source, that many trainers, one node that waits for all of them."""
    ids = tuple(f"Trainer.variant-{i}" for i in range(count))
    return [
        GraphNode("Source", "Source", ()),
        *(GraphNode(node_id, "Trainer", ("Source",)) for node_id in ids),
        GraphNode("Collect", "Collect", ids),
    ]


def any_graph(count, seed):
    chance = random.Random(seed)
    nodes: list[GraphNode] = []
    for i in range(count):
        upstream = chance.sample(nodes, min(i, chance.choice([0, 1, 1, 2, 2, 3])))
        ids = tuple(node.id for node in upstream)
        name = f"N{i}" + ".x" * chance.randint(0, 12)
        nodes.append(GraphNode(name, "K", ids, gate=chance.random() < 0.1))
    chance.shuffle(nodes)
    return nodes


GRAPHS = [chain(1), chain(13), fan(20), *(any_graph(30, seed) for seed in range(5))]


@pytest.mark.parametrize("nodes", GRAPHS)
def test_direct_edges_are_the_transitive_reduction(nodes):
    ordered = topological_order(nodes)
    direct = direct_upstream(ordered)

    def reach(edges):
        above: dict[str, set[str]] = {}
        for item in ordered:
            found = (above[upstream] for upstream in edges[item.id])
            above[item.id] = set(edges[item.id]).union(*found)
        return above

    everything = reach({item.id: item.upstream for item in ordered})
    assert reach(direct) == everything
    for target, upstream in direct.items():
        for leaving_out in upstream:
            fewer = [other for other in upstream if other != leaving_out]
            assert reach(direct | {target: fewer}) != everything


def test_a_drawing_is_safe_and_does_not_depend_on_chance():
    hostile = '"><script>alert(1)</script>&'
    text = as_svg([GraphNode(hostile, "K", ())])
    assert hostile in [x.text for x in ET.fromstring(text).iter("text")]
    assert not re.search(r"<script|url\(|href|@import|@font-face|\son\w+=|\sid=", text)
    assert "http" not in text
    assert as_svg(any_graph(30, 3)) == as_svg(any_graph(30, 3))
    assert "<svg" in as_svg([])


def test_a_graph_as_text():
    assert as_text(PIPELINE).splitlines() == [
        "Gen [CsvExampleGen]",
        "Schema",
        "my.gate [gate]       after Gen",
        "Trainer              after my.gate",
        "Evaluator            after Schema, Trainer",
    ]
    assert as_text([]) == ""
