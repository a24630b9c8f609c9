"""What the config lays over the compiled spec; see also ``test_same_graph``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from components.tfrecord_gen.spans.span_choice import SpanChoice
from components.tfrecord_gen.spans.window import Span, Window, read_spans
from pipeline.training.strategy.choice import Tpu, find_tpu
from runners.cloud.job_inputs import job_parameters
from runners.cloud.spec import (
    Constant,
    Container,
    FinalStatus,
    PipelineParameter,
    Spec,
    read_spec,
)
from runners.cloud.task_settings import tasks_of
from tests.pipeline.graph.compiled import (
    cloud_config,
    cloud_job,
    compile_locally,
    config_of,
    properties_of,
)

pytestmark = pytest.mark.tf

SPANS = "data.splits={train: '{SPAN}/train-*', eval: '{SPAN}/eval-*'}"


def _container(spec: Spec, node: str) -> Container:
    executor = spec.task(node).executor
    assert isinstance(executor, Container)
    return executor


def test_files_of_the_laptop_are_content_addressed_in_the_bucket(
    project: Path, tmp_path: Path
) -> None:
    """Found: schema and baseline store compiled as paths of the laptop."""
    from runners.cloud.compile_job import compile_pipeline

    weights = project / "given.h5"
    weights.write_text("weights")
    config = config_of(project, "digits", overrides=["train.warm_start=given.h5"])
    job, uploads = compile_pipeline(cloud_config(config))
    assert [item.path for item in uploads] == [config.schema_path, weights]
    spec = read_spec(job)
    text = json.dumps(job)
    for item in uploads:
        kind, digest, file = item.uri.removeprefix(
            "gs://bucket/root/digits/inputs/"
        ).split("/")
        assert (len(digest), file) == (64, item.path.name)
        assert item.uri in text, kind
    places = spec.task("AcceptData").parameters["baseline_store"]
    assert places == Constant("gs://bucket/root/digits/accepted")
    assert spec.pipeline_root == "gs://bucket/root/digits/artifacts"
    # The data itself is the user's to copy.
    assert str(project) not in text.replace(str(project / "data"), "")


def test_what_must_not_be_cached(project: Path) -> None:
    """Found: all tasks had enableCache, also Pusher, which then never pushes again."""
    config = config_of(project, "digits", overrides=[SPANS])

    def not_cached(**options: Any) -> set[str]:
        spec = read_spec(cloud_job(config, **options))
        return {
            task.id
            for task in spec.tasks
            if isinstance(task.executor, Container) and not task.cached
        }

    never = {"DataVerdict", "AcceptData", "Pusher", "LatestBlessedModel"}
    vertex = {*never, "WriteReport"}
    assert not_cached() == vertex
    assert not_cached(nodes={"Trainer": {"cache": False}}) == {*vertex, "Trainer"}
    kubeflow = {*never, "TFRecordGen"}
    assert not_cached(engine="kubeflow") == kubeflow


def test_runtime_parameters(project: Path) -> None:
    """Found: `spans` defaulted to "", a constant cache key."""
    config = config_of(project, "digits", overrides=["data.serving='sent-*'"])
    job = cloud_job(config)
    spec = read_spec(job)
    assert set(spec.parameters) == {
        "spans",
        "serving_spans",
        "accept_data",
        "baseline",
        "trainer_config",
    }
    assert not spec.parameters["spans"].optional
    assert spec.parameters["accept_data"].default == ""
    settings = json.loads(spec.parameters["trainer_config"].default)
    assert settings["train"]["epochs"] == config.train.epochs
    for node, key, name in [
        ("TFRecordGen", "spans", "spans"),
        ("ServingTFRecordGen", "spans", "serving_spans"),
        ("DataVerdict", "override", "accept_data"),
        ("Trainer", "custom_config", "trainer_config"),
        ("LatestBlessedModel", "baseline", "baseline"),
    ]:
        assert spec.task(node).parameters[key] == PipelineParameter(name)
    choice = SpanChoice(*[Window("gs://b", (), (Span(7),)) for _ in range(2)])
    plain = cloud_job(config_of(project, "digits"))
    names = set(read_spec(plain).parameters)
    assert names == {"spans", "accept_data", "baseline", "trainer_config"}
    for one in (job, plain):
        # Its value is read from the bucket.
        one["pipelineSpec"]["root"]["inputDefinitions"]["parameters"].pop("baseline")
    given = job_parameters(job, config, choice, "known")
    assert {name: spec.parameters[name].type for name in given} == {
        "spans": "STRING",
        "serving_spans": "STRING",
        "accept_data": "STRING",
    }
    assert read_spans(given["spans"]) == [Span(7)]
    assert set(job_parameters(plain, config, choice)) == {"spans"}


def test_retries_environment_and_resources_of_each_node(project: Path) -> None:
    """Found: no retries, no environment and no resources in any task."""
    overrides = ["retries={default: 1, nodes: {Trainer: 4}, backoff_s: 7}"]
    config = config_of(project, "digits", overrides=overrides)
    job = cloud_job(
        config,
        image="base:1",
        env={"TZ": "UTC"},
        nodes={
            "default": {"cpu": 4, "memory_gb": 16},
            "Trainer": {
                "memory_gb": 64,
                "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 2},
                "image": "other:2",
                "env": {"A": "1"},
            },
        },
    )
    spec = read_spec(job)
    trainer, transform = _container(spec, "Trainer"), _container(spec, "Transform")
    assert trainer.env == {
        "TF_USE_LEGACY_KERAS": "1",
        "TZ": "UTC",
        "A": "1",
    }
    assert trainer.image == "other:2"
    assert trainer.resources == {
        "cpuLimit": 4.0,
        "memoryLimit": 64.0,
        "accelerator": {"type": "NVIDIA_TESLA_T4", "count": "2"},
    }
    assert transform.env == {"TF_USE_LEGACY_KERAS": "1", "TZ": "UTC"}
    assert transform.image == "base:1"
    assert transform.resources == {"cpuLimit": 4.0, "memoryLimit": 16.0}
    tasks = tasks_of(job["pipelineSpec"])
    assert tasks["Trainer"]["retryPolicy"] == {
        "maxRetryCount": 4,
        "backoffDuration": "7s",
        "backoffFactor": 2.0,
        "backoffMaxDuration": "3600s",
    }
    assert tasks["Transform"]["retryPolicy"]["maxRetryCount"] == 1
    # It would fail the same way again.
    assert "retryPolicy" not in tasks["DataGate"]


def test_worker_pools_of_the_trainer(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(project, "digits")
    trainer = {
        "machine_type": "n1-standard-8",
        "workers": 3,
        "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 2},
    }
    spec = read_spec(
        cloud_job(
            config, project="p", region="r", image="i:1", nodes={"Trainer": trainer}
        )
    )
    args = _container(spec, "Trainer").args
    assert args[1] == "runners.vertex.custom_job.TrainerJob"
    assert not _container(spec, "Trainer").resources
    given = json.loads(spec.parameters["trainer_config"].default)
    assert given["model"]
    job = given["ai_platform_training_args"]
    first, others = job["job_spec"]["worker_pool_specs"]
    assert (first["replica_count"], others["replica_count"]) == (1, 2)
    assert first["machine_spec"] == {
        "machine_type": "n1-standard-8",
        "accelerator_type": "NVIDIA_TESLA_T4",
        "accelerator_count": 2,
    }
    env = [{"name": "TF_USE_LEGACY_KERAS", "value": "1"}]
    assert first["container_spec"] == {"image_uri": "i:1", "env": env}
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


def test_a_tuner_is_a_custom_job_by_profile(project: Path, tmp_path: Path) -> None:
    """A custom node of the same config is TFX's own Tuner on this machine."""
    tuner = (
        "{component: 'tfx.components:Tuner', parameters: {tuner_fn: own.tune}, "
        "inputs: {examples: Transform.transformed_examples}}"
    )
    config = config_of(project, "digits", overrides=[f"nodes.Search={tuner}"])
    local = compile_locally(config, tmp_path)["Search"]
    assert local.node_info.type.name == "tfx.components.tuner.component.Tuner"
    assert (
        json.loads(properties_of({"Search": local})["Search"]["custom_config"]) is None
    )
    machines = {
        "machine_type": "ct5lp-hightpu-4t",
        "tpu": {"topology": "2x2", "runtime_version": "2.16.1"},
    }
    in_container = read_spec(cloud_job(config))
    assert _container(in_container, "Search").args[1] == (
        "tfx.components.tuner.executor.Executor"
    )
    spec = read_spec(
        cloud_job(
            config, project="p", region="r", image="i:1", nodes={"Search": machines}
        )
    )
    assert _container(spec, "Search").args[1] == "runners.vertex.custom_job.TunerJob"
    value = spec.task("Search").parameters["custom_config"]
    assert isinstance(value, Constant)
    job = json.loads(value.value)["ai_platform_tuning_args"]
    (pool,) = job["job_spec"]["worker_pool_specs"]
    assert pool["machine_spec"]["tpu_topology"] == "2x2"
    assert job["labels"]["sluice-node"] == "search"


def test_a_tpu_of_the_trainer(project: Path) -> None:
    from google.cloud import aiplatform_v1

    tpu = {"topology": "2x2", "runtime_version": "2.16.1"}
    config = config_of(project, "digits", profile="vertex-tpu")
    assert config.cloud is not None
    trainer = config.cloud.nodes["Trainer"].model_dump(exclude_unset=True)
    assert trainer["tpu"] == tpu
    spec = read_spec(
        cloud_job(
            config, project="p", region="r", image="i:1", nodes={"Trainer": trainer}
        )
    )
    given = json.loads(spec.parameters["trainer_config"].default)
    job = given["ai_platform_training_args"]
    (pool,) = aiplatform_v1.CustomJobSpec(job["job_spec"]).worker_pool_specs
    assert pool.machine_spec.machine_type == "ct5lp-hightpu-4t"
    assert pool.machine_spec.tpu_topology == "2x2"
    environ = {item.name: item.value for item in pool.container_spec.env}
    assert find_tpu(environ, Path("no devices")) == Tpu("local", "TPU_NAME is set")
    assert job["labels"]["tpu-runtime"] == "2-16-1"
    assert given["train"]["strategy"] == "tpu"


def test_nodes_with_beam_may_use_dataflow(project: Path) -> None:
    from runners.cloud.image import image_of

    config = config_of(project, "digits")
    spec = read_spec(
        cloud_job(
            config,
            project="p",
            region="r",
            image="i",
            network="projects/1/global/networks/mine",
            beam={"runner": "dataflow", "nodes": ["StatisticsGen"], "max_workers": 9},
        )
    )

    def options(node: str) -> list[str]:
        args = list(_container(spec, node).args)
        return args[args.index("--json_serialized_inputs_spec_args") + 2 :]

    assert options("StatisticsGen") == [
        "--runner=DataflowRunner",
        "--project=p",
        "--region=r",
        "--temp_location=gs://bucket/root/digits/tmp",
        f"--sdk_container_image={image_of(project).name('i')}",
        "--network=mine",
        "--max_num_workers=9",
        "--experiments=use_runner_v2",
        "--labels=sluice-pipeline=digits",
    ]
    # What Beam's default runner is depends on its version.
    assert "FnApiRunner" in options("Transform")[0]
    assert options("Trainer") == []


def test_the_image_is_that_of_the_code(project: Path) -> None:
    """Found: fingerprints were the laptop's, and nothing tied them to the image."""
    from runners.cloud.image import image_of

    config = config_of(project, "digits")
    gpu = {"accelerator": {"type": "NVIDIA_TESLA_T4"}}
    job = cloud_job(config, image="host/sluice", nodes={"Trainer": gpu})
    spec = read_spec(job)
    images = {gpu: image_of(project, gpu=gpu) for gpu in (False, True)}
    assert _container(spec, "Pusher").image == images[False].name("host/sluice")
    assert _container(spec, "Trainer").image == images[True].name("host/sluice")
    assert images[False].fingerprint.startswith(spec.job["labels"]["sluice-code"])


def test_kubeflow_gets_what_it_can_run(project: Path) -> None:
    config = config_of(project, "digits")
    spec = read_spec(cloud_job(config, engine="kubeflow"))
    assert {type(task.executor) for task in spec.tasks} == {Container}
    commands = {_container(spec, task.id).command for task in spec.tasks}
    assert commands == {("python", "-m", "components.kubeflow_entrypoint")}
    assert _container(spec, "LatestBlessedModel").env["TF_USE_LEGACY_KERAS"] == "1"


def test_a_scheduled_run_stops_where_there_is_nothing_new(project: Path) -> None:
    """Found: `spans` of a schedule are a constant cache key, and nothing stops it.

    Later: serving requests were ingested without new data, too.
    """
    requests = "data.serving='sent-*'"
    config = config_of(project, "digits", overrides=[SPANS, requests])
    spec = read_spec(cloud_job(config, scheduled=True))
    assert "spans" not in spec.parameters
    gen = spec.task("TFRecordGen")
    assert not gen.cached
    assert gen.parameters["spans"] == Constant("")
    test = "(inputs.artifacts['examples'].artifacts[0].metadata['new_data'] == 1.0)"
    conditions = {task.id: task.condition for task in spec.tasks if task.condition}
    readers = {"StatisticsGen", "Transform", "Evaluator", "AdvanceWatermark"}
    assert conditions == dict.fromkeys({*readers, "ServingTFRecordGen"}, test)
    skipped = {*conditions}
    for _ in spec.tasks:
        skipped |= {task.id for task in spec.tasks if skipped & {*task.upstream}}
    assert {"ServingStatisticsGen", "Trainer", "Pusher"} <= skipped
    last = spec.task("AdvanceWatermark")
    assert {"TFRecordGen", "Pusher", "AcceptData", "DataGate"} < set(last.upstream)

    def mark(*overrides: str, **cloud: Any) -> str:
        config = config_of(project, "digits", overrides=[SPANS, *overrides])
        spec = read_spec(cloud_job(config, scheduled=True, **cloud))
        named = spec.task("AdvanceWatermark").parameters["watermark"]
        schedule = spec.task("TFRecordGen").parameters["schedule"]
        assert isinstance(named, Constant) and isinstance(schedule, Constant)
        assert json.loads(schedule.value)["watermark"] == named.value
        return named.value

    before = mark()
    assert before.startswith("gs://bucket/root/digits/state/watermarks/")
    assert mark(image="other:1", labels={"a": "b"}) == before
    # Another training, so the same data is trained on once more.
    assert mark("train.epochs=3") != before


def test_destinations_of_the_pusher(project: Path) -> None:
    from components.pusher.vertex_push import Endpoint, Registry

    registry = {"serving_image": "serving", "labels": {"team": "a"}}
    spec = read_spec(
        cloud_job(
            config_of(project, "digits"),
            project="p",
            region="r",
            push={"registry": registry, "endpoint": {"max_replicas": 3}},
        )
    )
    given = spec.task("Pusher").parameters["custom_config"]
    assert isinstance(given, Constant)
    found = json.loads(given.value)
    assert Registry(**found["registry"]) == Registry(
        "digits", "serving", "p", "r", {"team": "a"}
    )
    assert Endpoint(**found["endpoint"]) == Endpoint(
        "digits", "n1-standard-2", max_replicas=3
    )


def test_the_exit_handler_waits_for_all_and_gets_the_config(project: Path) -> None:
    config = config_of(project, "digits", overrides=[SPANS])
    job = cloud_job(config)
    spec = read_spec(job)
    handler = spec.exit_handler
    assert handler is not None and handler.id == "WriteReport"
    assert handler.parameters["final_status"] == FinalStatus()
    stored = handler.parameters["config"]
    assert isinstance(stored, Constant)
    assert json.loads(stored.value)["config"]["name"] == "digits"
    root = job["pipelineSpec"]["root"]["dag"]["tasks"]
    assert set(root) == {"tfx-dag", "WriteReport"}
    assert root["tfx-dag"]["inputs"]["parameters"].keys() == spec.parameters.keys()
    assert spec.task("TFRecordGen").parameters["spans"] == PipelineParameter("spans")
    assert read_spec(cloud_job(config, engine="kubeflow")).exit_handler is None
