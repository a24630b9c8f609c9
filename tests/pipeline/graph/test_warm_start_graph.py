"""How the model of a warm start gets into the graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.load import load_config
from pipeline.config.validate import validate_config
from pipeline.graph.custom_nodes import files_of
from pipeline.graph.locations import Locations
from sluice.errors import ConfigError

pytestmark = pytest.mark.tf


def _config(project: Path, source: str) -> Any:
    overrides = [f"train.warm_start={source}"]
    return validate_config(
        load_config("digits", overrides=overrides, cwd=project)
    ).config


def _components(config: Any, tmp_path: Path, db: Path | None) -> dict[str, Any]:
    from pipeline.graph.create_pipeline import create_pipeline

    where = Locations(str(tmp_path), db, tmp_path / "in", "serving", "accepted")
    return {node.id: node for node in create_pipeline(config, where).components}


@pytest.mark.parametrize("source", ["served", "latest", "latest_blessed"])
def test_the_trainer_reads_what_a_resolver_finds(
    project: Path, tmp_path: Path, source: str
) -> None:
    config = _config(project, source)
    nodes = _components(config, tmp_path, tmp_path / "metadata.db")
    (channel,) = (
        channel
        for key, channel in nodes["Trainer"].inputs.items()
        if key == "base_model"
    )
    assert channel.producer_component_id == "WarmStartModel"
    if source == "served":
        with pytest.raises(ConfigError, match="cannot look up the served model"):
            _components(config, tmp_path, None)
    else:
        from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner as v2

        from pipeline.graph.create_pipeline import create_pipeline

        where = Locations("gs://b/r", None, tmp_path / "in", "gs://b/s", "gs://b/a")
        options = v2.KubeflowV2DagRunnerConfig(
            default_image="image", use_pipeline_spec_2_1=True
        )
        runner = v2.KubeflowV2DagRunner(options, output_filename=str(tmp_path / "job"))
        job = runner.run(create_pipeline(config, where))
        tasks = job["pipelineSpec"]["root"]["dag"]["tasks"]
        trainer = tasks["Trainer"]["inputs"]["artifacts"]
        assert "WarmStartModel" in str(trainer["base_model"])


def test_a_path_is_copied_to_one_that_contains_its_digest(
    project: Path, tmp_path: Path
) -> None:
    model = project / "given" / "7"
    (model / "variables").mkdir(parents=True)
    (model / "saved_model.pb").write_text("one")
    (model / "variables" / "variables.index").write_text("index")
    config = _config(project, "given/7")

    def path() -> Path:
        nodes = _components(config, tmp_path, tmp_path / "metadata.db")
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
