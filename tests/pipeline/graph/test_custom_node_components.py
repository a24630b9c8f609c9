"""Custom nodes in the TFX pipeline of a config."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from runners.cloud.task_settings import tasks_of
from tests.pipeline.graph.compiled import (
    cloud_job,
    compile_locally,
    config_of,
    properties_of,
)

pytestmark = pytest.mark.tf

OWN = """
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact
from tfx.dsl.component.experimental.annotations import Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types.standard_artifacts import Examples, String


@component
def Count(
    examples: InputArtifact[Examples],
    summary: OutputArtifact[String],
    at_least: Parameter[int] = 1,
    words: Parameter[str] = "",
):
    pass


class NoComponent:
    pass
"""
COUNT = {
    "component": "own_parts:Count",
    "inputs": {"examples": "TFRecordGen.examples"},
    "parameters": {"at_least": 2},
    "before": ["Transform"],
}
BULK_INFERRER = {
    "component": "tfx.components:BulkInferrer",
    "inputs": {"examples": "TFRecordGen.examples", "model": "Trainer.model"},
    "parameters": {"data_spec": {"example_splits": ["test"]}},
    "after": ["Pusher"],
}


@pytest.fixture
def own_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "own_parts.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path / "own")


def test_custom_nodes_are_in_local_and_cloud_pipelines(project, tmp_path, own_parts):
    overrides = [f"nodes.Count={COUNT}", f"nodes.Predictions={BULK_INFERRER}"]
    config = config_of(project, "digits", overrides=overrides)
    nodes = compile_locally(config, tmp_path)
    others = compile_locally(config_of(project, "digits"), tmp_path)
    assert set(nodes) == {*others, "Count", "Predictions"}
    assert list(nodes["Count"].upstream_nodes) == ["TFRecordGen"]
    assert "Count" in nodes["Transform"].upstream_nodes
    assert {"Pusher", "Trainer"} <= set(nodes["Predictions"].upstream_nodes)
    properties = properties_of(nodes)
    assert properties["Count"]["at_least"] == 2
    assert list(json.loads(properties["Count"]["fingerprint"])["code"]) == [
        "own_parts (installed)"
    ]
    tasks = tasks_of(cloud_job(config)["pipelineSpec"])
    assert "Count" in tasks["Transform"]["dependentTasks"]
    assert "Pusher" in tasks["Predictions"]["dependentTasks"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"component": "own_parts:NoComponent"}, "not a TFX component"),
        ({"inputs": {"examples": "StatisticsGen.statistics"}}, "'Count', cannot be"),
        ({"parameters": {"examples": "a"}}, "multiple values for .* 'examples'"),
        (
            {**BULK_INFERRER, "parameters": {"data_spec": {"example_split": ["test"]}}},
            'no field named "example_split"',
        ),
    ],
)
def test_a_component_that_cannot_be_created_is_a_config_error(
    project, tmp_path, own_parts, change, message
):
    from sluice.errors import ConfigError

    overrides = [f"nodes.Count={ {**COUNT, **change, 'before': []} }"]
    config = config_of(project, "digits", overrides=overrides)
    with pytest.raises(ConfigError, match=message) as caught:
        compile_locally(config, tmp_path)
    assert caught.value.where and "nodes.Count" in caught.value.where


def test_a_fingerprint_covers_the_files_that_parameters_name(
    project, tmp_path, own_parts
):
    """Otherwise an edit of them would be served from the cache."""
    words = project / "words.txt"
    node = {**COUNT, "parameters": {"words": "words.txt"}, "before": []}
    found = []
    for text in ("a", "b"):
        words.write_text(text)
        config = config_of(project, "digits", overrides=[f"nodes.Own={node}"])
        properties = properties_of(compile_locally(config, tmp_path))
        assert json.loads(properties["Trainer"]["fingerprint"])["files"] == {}
        found.append(json.loads(properties["Own"]["fingerprint"])["files"])
    words.unlink()
    assert found == [
        {"words.txt": hashlib.sha256(text).hexdigest()} for text in (b"a", b"b")
    ]
