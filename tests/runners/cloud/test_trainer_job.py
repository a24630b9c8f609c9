"""Custom jobs of Vertex AI, which trainings on several machines or TPUs become."""

import json
from pathlib import Path

import pytest

from pipeline.training.strategy.choice import Tpu, find_tpu
from tests.pipeline.graph.compiled import (
    by_id,
    cloud_job,
    compile_locally,
    config_of,
    container,
    env,
    properties_of,
    trainer_config,
)

pytestmark = pytest.mark.tf

PLACE: dict = {"project": "my-project", "region": "europe-west4", "image": "i:1"}


def test_worker_pools_of_the_trainer(project, monkeypatch):
    trainer = {
        "machine_type": "n1-standard-8",
        "workers": 3,
        "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 2},
    }
    spec = cloud_job(config_of(project, "digits"), nodes={"Trainer": trainer}, **PLACE)
    found = container(spec, "Trainer")
    assert found.args[1] == "runners.vertex.custom_job.TrainerJob"
    assert not found.HasField("resources")
    given = trainer_config(spec)
    assert given["model"]
    job = given["ai_platform_training_args"]
    first, others = job["job_spec"]["worker_pool_specs"]
    assert (first["replica_count"], others["replica_count"]) == (1, 2)
    assert first["machine_spec"] == {
        "machine_type": "n1-standard-8",
        "accelerator_type": "NVIDIA_TESLA_T4",
        "accelerator_count": 2,
    }
    variables = [{"name": "TF_USE_LEGACY_KERAS", "value": "1"}]
    assert first["container_spec"] == {"image_uri": "i:1", "env": variables}
    # What TFX's executor makes of it has no field that Vertex AI does not know.
    from google.cloud import aiplatform_v1
    from tfx.extensions.google_cloud_ai_platform import training_clients

    monkeypatch.setattr(
        training_clients.VertexJobClient, "create_client", lambda self: None
    )
    job.pop("project")
    made = training_clients.VertexJobClient("r").create_training_job(
        {}, {}, {"custom_config": "{}"}, "executor.Class", job, None, {}
    )
    parsed = aiplatform_v1.CustomJob(made)
    assert parsed.display_name == "digits-trainer"
    assert parsed.labels["sluice-pipeline"] == "digits"
    (_, pool) = parsed.job_spec.worker_pool_specs
    assert (pool.replica_count, pool.container_spec.env[0].value) == (2, "1")
    assert "tfx.scripts.run_executor" in pool.container_spec.command


def test_a_tuner_is_a_custom_job_by_profile(project, tmp_path):
    """A custom node of the same config is TFX's own Tuner on this machine."""
    tuner = (
        "{component: 'tfx.components:Tuner', parameters: {tuner_fn: own.tune}, "
        "inputs: {examples: Transform.transformed_examples}}"
    )
    config = config_of(project, "digits", overrides=[f"nodes.Search={tuner}"])
    local = compile_locally(config, tmp_path)["Search"]
    assert local.node_info.type.name == "tfx.components.tuner.component.Tuner"
    properties = properties_of({"Search": local})["Search"]
    assert json.loads(properties["custom_config"]) is None
    machines = {
        "machine_type": "ct5lp-hightpu-4t",
        "tpu": {"topology": "2x2", "runtime_version": "2.16.1"},
    }
    executor = container(cloud_job(config), "Search").args[1]
    assert executor == "tfx.components.tuner.executor.Executor"
    search = by_id(cloud_job(config, nodes={"Search": machines}, **PLACE))["Search"]
    executor = search.executor.container.args[1]
    assert executor == "runners.vertex.custom_job.TunerJob"
    value = search.parameters["custom_config"]
    job = json.loads(value)["ai_platform_tuning_args"]
    (pool,) = job["job_spec"]["worker_pool_specs"]
    assert pool["machine_spec"]["tpu_topology"] == "2x2"
    assert job["labels"]["sluice-node"] == "search"


def test_a_tpu_of_the_trainer(project):
    from google.cloud import aiplatform_v1

    config = config_of(project, "digits", profile="vertex-tpu")
    trainer = config.cloud.nodes["Trainer"].model_dump(exclude_unset=True)
    assert trainer["tpu"] == {"topology": "2x2", "runtime_version": "2.16.1"}
    given = trainer_config(cloud_job(config, nodes={"Trainer": trainer}, **PLACE))
    job = given["ai_platform_training_args"]
    (pool,) = aiplatform_v1.CustomJobSpec(job["job_spec"]).worker_pool_specs
    assert pool.machine_spec.machine_type == "ct5lp-hightpu-4t"
    assert pool.machine_spec.tpu_topology == "2x2"
    environ = env(pool.container_spec)
    assert find_tpu(environ, Path("no devices")) == Tpu("local", "TPU_NAME is set")
    assert job["labels"]["tpu-runtime"] == "2-16-1"
    assert given["train"]["strategy"] == "tpu"
