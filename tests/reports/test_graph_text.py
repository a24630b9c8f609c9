"""Text drawings of graphs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.graph import GraphNode, direct_upstream, topological_order
from reports.graph_text import as_text

pytestmark = pytest.mark.unit

SLUICE = [
    GraphNode("TFRecordGen", "TFRecordGen", ()),
    GraphNode("ImportSchemaGen", "ImportSchemaGen", ()),
    GraphNode("LatestBlessedModel", "Resolver", ()),
    GraphNode("StatisticsGen", "StatisticsGen", ("TFRecordGen",)),
    GraphNode("Validator", "Validator", ("ImportSchemaGen", "StatisticsGen")),
    GraphNode("DataGate", "DataGate", ("Validator",), gate=True),
    GraphNode("Trainer", "Trainer", ("DataGate", "ImportSchemaGen")),
    GraphNode("Evaluator", "Evaluator", ("LatestBlessedModel", "Trainer")),
]


@st.composite
def graphs(draw: st.DrawFn) -> list[GraphNode]:
    """Any graph of up to 14 nodes, in any order."""
    nodes = []
    for number in range(draw(st.integers(0, 14))):
        upstream = draw(
            st.sets(st.sampled_from(range(number)), max_size=4)
            if number
            else st.just(set())
        )
        ids = tuple(f"n{earlier}" for earlier in sorted(upstream))
        nodes.append(GraphNode(f"n{number}", "Kind", ids))
    return draw(st.permutations(nodes))


def test_a_pipeline_as_text():
    assert as_text(SLUICE).splitlines() == [
        "*    TFRecordGen",
        "*    StatisticsGen                  waits for TFRecordGen",
        "| *  ImportSchemaGen",
        "*-'  Validator                      waits for ImportSchemaGen, StatisticsGen",
        "*    DataGate [gate]                waits for Validator",
        "*    Trainer                        waits for DataGate (ImportSchemaGen)",
        "| *  LatestBlessedModel [Resolver]",
        "o-'  Evaluator                      waits for LatestBlessedModel, Trainer",
        "",
        "(in parentheses: not drawn, as the lines imply it)",
    ]


def test_states_are_between_the_name_and_the_upstream_nodes():
    nodes = [GraphNode("A.x", "A", ()), GraphNode("B-1", "B", ("A.x",))]
    assert as_text(nodes, {"A.x": "ran", "B-1": "not_reached"}).splitlines() == [
        "*  A.x [A]  ran",
        "o  B-1 [B]  not reached  waits for A.x",
    ]


def test_one_node_and_an_empty_graph():
    assert as_text([GraphNode("Only", "Only", ())]) == "o  Only"
    assert as_text([]) == ""


def test_lines_join_only_connected_nodes():
    nodes = [GraphNode("a", "a", ()), GraphNode("b", "b", ())]
    assert as_text(nodes).splitlines() == ["o  a", "o  b"]


def test_upstream_nodes_wrap_in_a_narrow_terminal():
    sources = [GraphNode(f"Source-{i}", f"Source-{i}", ()) for i in range(3)]
    ids = tuple(node.id for node in sources)
    sink = GraphNode("Sink", "Sink", ids)
    last = GraphNode("Last", "Last", ("Source-0", "Sink"))
    also = GraphNode("Also", "Also", ("Source-1",))
    lines = as_text([*sources, sink, last, also], width=50).splitlines()
    assert max(map(len, lines[:-1])) <= 50
    assert lines[3:6] == [
        "*-+-'  Sink      waits for Source-0, Source-1,",
        "| |                Source-2",
        "o |    Last      waits for Sink (Source-0)",
    ]


@settings(deadline=None, max_examples=50)
@given(graphs())
def test_the_drawn_lines_are_the_edges(nodes):
    """Follows the lines from the top, knowing only what the docstring says of them."""
    ordered = topological_order(nodes)
    direct = direct_upstream(ordered)
    lanes: dict[int, str] = {}
    for node, line in zip(ordered, as_text(nodes).splitlines(), strict=False):
        drawing = line[: line.index(node.id)].rstrip()
        own = max(drawing.find("*"), drawing.find("o"))
        touched = {at for at, mark in enumerate(drawing) if mark in "+'"}
        waited = {lanes[at] for at in touched}
        if own in lanes:
            waited.add(lanes[own])
        assert waited == set(direct[node.id])
        reach = [own, *touched]
        for at in range(min(reach) + 1, max(reach)):
            assert drawing[at] in "-|+'*o"
        for at in [at for at in touched if drawing[at] == "'"] + [own]:
            lanes.pop(at, None)
        assert {at for at, mark in enumerate(drawing) if mark in "|+"} == set(lanes)
        if drawing[own] == "*":
            lanes[own] = node.id
    assert lanes == {}
