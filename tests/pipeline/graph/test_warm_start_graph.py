"""How the model of a warm start gets into the graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.checks.check_config import validate_config
from pipeline.config.load import load_config
from pipeline.graph.custom_nodes import files_of
from pipeline.graph.locations import Locations
from sluice.errors import ConfigError

pytestmark = pytest.mark.tf


def _config(project: Path, source: str) -> Any:
    overrides = [f"train.warm_start={source}"]
    return validate_config(
        load_config("digits", overrides=overrides, cwd=project)
    ).config


def _pipeline(config: Any, tmp_path: Path, db: Path | None) -> Any:
    from pipeline.graph.create_pipeline import create_pipeline

    root = str(tmp_path) if db else "gs://bucket/root"
    return create_pipeline(
        config, Locations(root, db, tmp_path / "in", f"{root}/s", f"{root}/a")
    )


@pytest.mark.parametrize("source", ["served", "latest", "latest_blessed"])
def test_the_trainer_reads_what_a_resolver_finds(project, tmp_path, source):
    from tfx.dsl.compiler import compiler
    from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner as v2

    config = _config(project, source)
    local = _pipeline(config, tmp_path, tmp_path / "metadata.db")
    nodes = {
        node.pipeline_node.node_info.id: node.pipeline_node
        for node in compiler.Compiler().compile(local).nodes
    }
    (channel,) = nodes["Trainer"].inputs.inputs["base_model"].channels
    assert channel.producer_node_query.id == "WarmStartModel"
    if source == "served":
        with pytest.raises(ConfigError, match="cannot look up the served model"):
            _pipeline(config, tmp_path, None)
        return
    options = v2.KubeflowV2DagRunnerConfig(
        default_image="image", use_pipeline_spec_2_1=True
    )
    runner = v2.KubeflowV2DagRunner(options, output_filename=str(tmp_path / "job"))
    job = runner.run(_pipeline(config, tmp_path, None))
    tasks = job["pipelineSpec"]["root"]["dag"]["tasks"]
    trainer = tasks["Trainer"]["inputs"]["artifacts"]
    assert "WarmStartModel" in str(trainer["base_model"])


def test_a_path_is_copied_to_one_that_contains_its_digest(project, tmp_path):
    model = project / "given" / "7"
    (model / "variables").mkdir(parents=True)
    (model / "saved_model.pb").write_text("one")
    (model / "variables" / "variables.index").write_text("index")
    config = _config(project, "given/7")

    def path() -> Path:
        pipeline = _pipeline(config, tmp_path, tmp_path / "metadata.db")
        nodes = {node.id: node for node in pipeline.components}
        assert "WarmStartModel" not in nodes
        properties = nodes["Trainer"].exec_properties["custom_config"]
        return Path(json.loads(properties)["warm_start_path"])

    before = path()
    assert path() == before != model
    assert (before / "saved_model.pb").read_text() == "one"
    assert [item.name for item in before.parent.iterdir()] == ["7"]
    names = {file.name for file in files_of(config)}
    assert names == {"saved_model.pb", "variables.index"}
    (model / "saved_model.pb").write_text("two")
    assert path() != before
