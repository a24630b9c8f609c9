"""Graph validation: nodes, outputs and cycles, without importing TFX."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.checks.before_run import check_before_run
from pipeline.config.config import Config
from pipeline.config.load import load_config
from pipeline.graph.custom_nodes import (
    node_ids,
    selected_nodes,
    sort_nodes,
)
from sluice.errors import ConfigError
from sluice.project import own_root

pytestmark = pytest.mark.unit

COUNT = {
    "component": "mine.parts:Count",
    "inputs": {"examples": "TFRecordGen.examples"},
    "parameters": {"name": "a"},
}


@pytest.fixture
def config_of(project: Path) -> Callable[..., Config]:
    def config_of(*overrides: str, **nodes: dict) -> Config:
        added = [f"nodes.{name}={json.dumps(node)}" for name, node in nodes.items()]
        return load_config("digits", overrides=(*overrides, *added), cwd=project)

    return config_of


@pytest.fixture
def refused(config_of: Callable[..., Config]) -> Callable[..., ConfigError]:
    def refused(*overrides: str, **nodes: dict) -> ConfigError:
        with pytest.raises(ConfigError) as caught:
            check_before_run(config_of(*overrides, **nodes))
        return caught.value

    return refused


def test_nodes_are_in_topological_order(config_of):
    assert node_ids(config_of())[:2] == ["TFRecordGen", "ImportSchemaGen"]
    gate = {**COUNT, "before": ["StatisticsGen"]}
    last = {
        "component": "tfx.components:StatisticsGen",
        "inputs": {"examples": "Transform.transformed_examples"},
        "after": ["Count"],
    }
    config = check_before_run(config_of(Last=last, Count=gate))
    order = [node.id for node in sort_nodes(config)]
    assert set(order) == {*node_ids(config_of()), "Last", "Count"}
    for first, second in [
        ("TFRecordGen", "Count"),
        ("Count", "StatisticsGen"),
        ("Transform", "Last"),
    ]:
        assert order.index(first) < order.index(second)
    assert "Count" in selected_nodes(config, ["DataGate"])
    assert "Pusher" not in selected_nodes(config, ["Last"])


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"inputs": {"examples": "TFRecordGenn.examples"}}, ["mean 'TFRecordGen'?"]),
        ({"before": ["TFRecordGen"]}, ["has a cycle", "Count"]),
        ({"after": ["Count"]}, ["a cycle: Count -> Count"]),
    ],
)
def test_an_error_in_a_node_names_the_node(refused, change, names):
    error = refused(Count={**COUNT, **change})
    assert not error.examples, "reported more than once"
    assert error.where and "nodes.Count" in error.where
    for name in names:
        assert name in str(error)


def test_serving_nodes_are_there_if_the_config_has_serving_data(refused, config_of):
    node = {**COUNT, "inputs": {"examples": "ServingTFRecordGen.examples"}}
    assert "no node 'ServingTFRecordGen'" in str(refused(Count=node))
    check_before_run(config_of("data.serving='sent-*'", Count=node))


def test_tensorflow_is_not_imported(project):
    program = """
import sys
from pipeline.config.load import load_config
from pipeline.config.serialize import to_yaml
from pipeline.checks.before_run import check_before_run
node = "{component: 'tfx.components:SchemaGen', inputs: {statistics: S.statistics}}"
node = node.replace("S.", "StatisticsGen.")
config = load_config("digits", overrides=[f"nodes.Second={node}"])
to_yaml(check_before_run(config))
print(sorted({"tensorflow", "tfx", "apache_beam", "numpy"} & {*sys.modules}))
"""
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=project,
        env={"PYTHONPATH": str(own_root()), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.stdout, result.stderr) == ("[]\n", "")
