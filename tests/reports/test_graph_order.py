"""Topological order, direct edges and layers of a graph."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.graph import GraphNode, direct_upstream, layers, topological_order

pytestmark = pytest.mark.unit


def node(node_id: str, *upstream: str) -> GraphNode:
    return GraphNode(node_id, "Kind", upstream)


def ids(nodes: list[GraphNode]) -> list[str]:
    return [item.id for item in nodes]


@st.composite
def graphs(draw: st.DrawFn) -> list[GraphNode]:
    nodes: list[GraphNode] = []
    for number in range(draw(st.integers(0, 12))):
        upstream = draw(st.lists(st.sampled_from(nodes), max_size=4)) if nodes else []
        nodes.append(node(f"n{number}", *(item.id for item in upstream)))
    return draw(st.permutations(nodes))


@settings(deadline=None, max_examples=50)
@given(graphs())
def test_every_node_comes_after_its_upstream_nodes(nodes):
    ordered = topological_order(nodes)
    assert sorted(ids(ordered)) == sorted(ids(nodes))
    place = {item.id: index for index, item in enumerate(ordered)}
    for item in nodes:
        assert all(place[upstream] < place[item.id] for upstream in item.upstream)


def test_a_source_comes_right_before_its_first_user():
    nodes = [
        node("gen"),
        node("schema"),
        node("baseline"),
        node("statistics", "gen"),
        node("validator", "schema", "statistics"),
        node("trainer", "validator", "schema"),
        node("evaluator", "baseline", "trainer"),
    ]
    assert ids(topological_order(nodes)) == [
        "gen",
        "statistics",
        "schema",
        "validator",
        "trainer",
        "baseline",
        "evaluator",
    ]


def test_a_long_chain_does_not_exceed_the_recursion_limit():
    nodes = [node(f"n{i}", *([f"n{i - 1}"] if i else [])) for i in range(3000)]
    assert ids(topological_order(nodes[::-1])) == ids(nodes)


@settings(deadline=None, max_examples=50)
@given(graphs())
def test_direct_edges_are_the_transitive_reduction(nodes):
    ordered = topological_order(nodes)
    direct = direct_upstream(ordered)

    def reach(edges: dict[str, tuple[str, ...]]) -> dict[str, set[str]]:
        above: dict[str, set[str]] = {}
        for item in ordered:
            above[item.id] = set(edges[item.id]).union(
                *(above[upstream] for upstream in edges[item.id])
            )
        return above

    everything = reach({item.id: item.upstream for item in ordered})
    assert reach(direct) == everything
    for target, upstream in direct.items():
        for leaving_out in upstream:
            fewer = tuple(other for other in upstream if other != leaving_out)
            assert reach(direct | {target: fewer}) != everything


@settings(deadline=None, max_examples=50)
@given(graphs(), st.integers(1, 5))
def test_layers_have_a_maximum_width_and_lie_below_upstream_nodes(nodes, width):
    rows = layers(topological_order(nodes), width)
    assert sorted(item.id for row in rows for item in row) == sorted(ids(nodes))
    assert all(1 <= len(row) <= width for row in rows)
    layer = {item.id: index for index, row in enumerate(rows) for item in row}
    for item in nodes:
        assert all(layer[upstream] < layer[item.id] for upstream in item.upstream)


def test_a_source_lies_right_above_its_first_user():
    nodes = [node("a"), node("b", "a"), node("c", "b"), node("late"), node("d", "c")]
    nodes.append(node("e", "late", "d"))
    rows = layers(topological_order(nodes), 6)
    assert [sorted(ids(row)) for row in rows] == [
        ["a"],
        ["b"],
        ["c"],
        ["d", "late"],
        ["e"],
    ]
