"""Mermaid drawings of graphs."""

from __future__ import annotations

import pytest

from reports.graph import GraphNode
from reports.graph_mermaid import as_mermaid

pytestmark = pytest.mark.unit


def test_gates_implied_edges_and_states_are_drawn():
    nodes = [
        GraphNode("Gen", "CsvExampleGen", ()),
        GraphNode("my.gate", "my.gate", ("Gen",), gate=True),
        GraphNode("Trainer", "Trainer", ("Gen", "my.gate")),
    ]
    states = {"Gen": "ran", "my.gate": "blocked", "Trainer": "not_reached"}
    text = as_mermaid(nodes, states)
    assert text.splitlines()[:7] == [
        "flowchart TD",
        '    n0["Gen<br/>CsvExampleGen, ran"]',
        '    n1{{"my.gate<br/>blocked"}}',
        '    n2["Trainer<br/>not reached"]',
        "    n0 --> n1",
        "    n0 -.-> n2",
        "    n1 --> n2",
    ]
    for number, state in enumerate(["ran", "blocked", "not_reached"]):
        assert f"    classDef {state} fill:#" in text
        assert f"    class n{number} {state}" in text
    assert "classDef failed" not in text


def test_ids_with_mermaid_syntax_are_escaped():
    nodes = [
        GraphNode("end", "end", ()),
        GraphNode('a"]; click n0 "x', "k", ("end",)),
        GraphNode("a\n--> b", "<b>", ("end",)),
    ]
    assert as_mermaid(nodes).splitlines() == [
        "flowchart TD",
        '    n0["end"]',
        '    n1["a#34;#93;#59; click n0 #34;x<br/>k"]',
        '    n2["a#10;--#62; b<br/>#60;b#62;"]',
        "    n0 --> n1",
        "    n0 --> n2",
    ]


def test_an_empty_graph():
    assert as_mermaid([]) == "flowchart TD"
