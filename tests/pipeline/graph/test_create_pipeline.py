"""The TFX pipeline of a config, for local runs and cloud services."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pipeline.graph.locations import Locations
from tests.pipeline.graph.compiled import compile_locally, config_of, properties_of

pytestmark = pytest.mark.tf


def _local_edges(nodes) -> set[tuple[str, str]]:
    return {(up, name) for name, node in nodes.items() for up in node.upstream_nodes}


def test_training_waits_for_the_data_gate(project, tmp_path):
    nodes = compile_locally(config_of(project, "digits"), tmp_path)
    assert {down for up, down in _local_edges(nodes) if up == "DataGate"} == {
        "AcceptData",
        "Transform",
        "Trainer",
    }
    assert not nodes["DataGate"].outputs.outputs


def _changed(project: Path, tmp_path: Path, name: str, *overrides: str) -> set[str]:
    """Returns the nodes whose exec properties an override changes."""
    before = properties_of(compile_locally(config_of(project, name), tmp_path))
    config = config_of(project, name, overrides=overrides)
    after = properties_of(compile_locally(config, tmp_path))
    return {node for node in before if before[node] != after[node]}


@pytest.mark.parametrize(
    ("override", "nodes"),
    [
        ("train.epochs=7", {"Trainer"}),
        ("evaluate.metrics=[AUC, Precision]", {"Evaluator"}),
        ("features.company.buckets=32", {"Transform", "Trainer"}),
        ("examples.max_record_bytes=1000", {"TFRecordGen"}),
        (
            "data.splits.test=null",
            {"TFRecordGen", "DataVerdict", "Evaluator", "ModelVerdict", "ServingCheck"},
        ),
    ],
)
def test_a_config_change_affects_only_nodes_that_use_it(
    project, tmp_path, override, nodes
):
    assert _changed(project, tmp_path, "taxi", override) == nodes


def test_every_node_but_the_resolver_has_a_fingerprint(project, tmp_path):
    properties = properties_of(compile_locally(config_of(project, "digits"), tmp_path))
    without = {node for node, found in properties.items() if "fingerprint" not in found}
    assert without == {"LatestBlessedModel"}
    trainer = json.loads(properties["Trainer"]["fingerprint"])
    assert trainer["packages"]["tensorflow"]
    assert {"pipeline.training.run_fn", "pipeline.training.models.cnn"} <= set(
        trainer["code"]
    )
    assert "pipeline.training.models.dense" not in trainer["code"]


def test_the_path_of_the_schema_contains_its_digest(project, tmp_path):
    def path_of_schema() -> str:
        nodes = compile_locally(config_of(project, "digits"), tmp_path)
        return properties_of(nodes)["ImportSchemaGen"]["schema_file"]

    schema = project / "schemas" / "digits" / "schema.pbtxt"
    text = schema.read_text()
    before = path_of_schema()
    assert Path(before).read_text() == text
    os.utime(schema, (0, 0))
    assert path_of_schema() == before
    try:
        schema.write_text(text + "# another comment\n")
        assert path_of_schema() != before
    finally:
        schema.write_text(text)


def test_the_registry_agrees_with_the_components(project, tmp_path):
    from pipeline.graph.create_pipeline import create_pipeline
    from pipeline.graph.custom_nodes import sort_nodes
    from sluice.node_kinds import kind_of

    config = config_of(project, "digits", overrides=["data.serving='sent-*'"])
    locations = Locations(str(tmp_path), tmp_path / "m.db", tmp_path / "in", "s", "l")
    components = {c.id: c for c in create_pipeline(config, locations).components}
    nodes = {node.id: node for node in sort_nodes(config)}
    assert components.keys() == nodes.keys()
    for name, component in components.items():
        upstream = {node.id for node in component.upstream_nodes}
        assert upstream == nodes.keys() & set(nodes[name].upstream), name
    kinds = {name: kind_of(component.type) for name, component in components.items()}
    for trait, names in {
        "gate": {"DataGate"},
        "judges_data": {"DataVerdict"},
        "resolver": {"LatestBlessedModel"},
        "system": {"LatestBlessedModel"},
        "ingests": {"TFRecordGen", "ServingTFRecordGen"},
        "accepts_data": {"AcceptData"},
        "pushes": {"Pusher"},
    }.items():
        assert {name for name, kind in kinds.items() if getattr(kind, trait)} == names
