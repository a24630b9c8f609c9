"""What the config lays over the compiled spec; see also ``test_same_graph``."""

import json

import pytest

from components.tfrecord_gen.spans.span_choice import SpanChoice
from components.tfrecord_gen.spans.window import Span, Window, read_spans
from runners.cloud.job_inputs import job_parameters
from runners.cloud.spec import read_spec
from runners.cloud.task_settings import tasks_of
from sluice.errors import ConfigError
from tests.pipeline.graph.compiled import (
    by_id,
    cloud_config,
    cloud_job,
    config_of,
    container,
    env,
    parameters_of,
    trainer_config,
)

pytestmark = pytest.mark.tf

PLACE: dict = {"project": "my-project", "region": "europe-west4", "image": "i:1"}
SPANS = "data.splits={train: '{SPAN}/train-*', eval: '{SPAN}/eval-*'}"


def test_files_of_the_laptop_are_content_addressed_in_the_bucket(project):
    """Found: schema and baseline store compiled as paths of the laptop."""
    from runners.cloud.compile_job import compile_pipeline

    weights = project / "given.h5"
    weights.write_text("weights")
    config = config_of(project, "digits", overrides=["train.warm_start=given.h5"])
    job, uploads = compile_pipeline(cloud_config(config))
    assert [item.path for item in uploads] == [config.schema_path, weights]
    text = json.dumps(job)
    for item in uploads:
        folder = "gs://bucket/root/digits/inputs/"
        kind, digest, file = item.uri.removeprefix(folder).split("/")
        assert (len(digest), file) == (64, item.path.name)
        assert item.uri in text, kind
    places = by_id(job)["AcceptData"].parameters["baseline_store"]
    assert places == "gs://bucket/root/digits/accepted"
    assert read_spec(job).root == "gs://bucket/root/digits/artifacts"
    # The data itself is the user's to copy.
    assert str(project) not in text.replace(str(project / "data"), "")


def test_what_must_not_be_cached(project):
    """Found: all tasks had enableCache, also Pusher, which then never pushes again."""
    config = config_of(project, "digits", overrides=[SPANS])

    def not_cached(**options):
        return {
            name
            for name, task in by_id(cloud_job(config, **options)).items()
            if task.executor.WhichOneof("spec") == "container"
            and not task.task.caching_options.enable_cache
        }

    never = {"DataVerdict", "AcceptData", "Pusher", "LatestBlessedModel"}
    vertex = {*never, "WriteReport"}
    assert not_cached() == vertex
    assert not_cached(nodes={"Trainer": {"cache": False}}) == {*vertex, "Trainer"}
    assert not_cached(engine="kubeflow") == {*never, "TFRecordGen"}


def test_runtime_parameters(project):
    """Found: `spans` defaulted to "", a constant cache key."""
    config = config_of(project, "digits", overrides=["data.serving='sent-*'"])
    job, plain = cloud_job(config), cloud_job(config_of(project, "digits"))
    common = {"spans", "accept_data", "baseline", "trainer_config"}
    assert set(parameters_of(job)) == {*common, "serving_spans"}
    assert set(parameters_of(plain)) == common
    # What has no default must be given.
    assert set(read_spec(job).parameters) == common - {"spans"}
    assert read_spec(job).parameters["accept_data"] == ""
    assert trainer_config(job)["train"]["epochs"] == config.train.epochs
    given = {name: f"the {name}" for name in parameters_of(job)}
    tasks = by_id({**job, "runtimeConfig": {"parameterValues": given}})
    for node, key, name in [
        ("TFRecordGen", "spans", "spans"),
        ("ServingTFRecordGen", "spans", "serving_spans"),
        ("DataVerdict", "override", "accept_data"),
        ("Trainer", "custom_config", "trainer_config"),
        ("LatestBlessedModel", "baseline", "baseline"),
    ]:
        assert tasks[node].parameters[key] == f"the {name}"
    choice = SpanChoice(*[Window("gs://b", (), (Span(7),)) for _ in range(2)])
    for one in (job, plain):
        # Its value is read from the bucket.
        parameters_of(one).pop("baseline")
    given = job_parameters(job, "gs://b/serving", choice, "known")
    assert set(given) == {"spans", "serving_spans", "accept_data"}
    assert read_spans(given["spans"]) == [Span(7)]
    assert set(job_parameters(plain, "gs://b/serving", choice)) == {"spans"}


def test_retries_environment_and_resources_of_each_node(project):
    """Found: no retries, no environment and no resources in any task."""
    job = cloud_job(
        config_of(project, "digits"),
        image="base:1",
        env={"TZ": "UTC"},
        nodes={
            "default": {"cpu": 4, "memory_gb": 16, "retries": 1},
            "Trainer": {
                "memory_gb": 64,
                "retries": 4,
                "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 2},
                "image": "other:2",
                "env": {"A": "1"},
            },
        },
    )
    trainer, transform = container(job, "Trainer"), container(job, "Transform")
    common = {"TF_USE_LEGACY_KERAS": "1", "TZ": "UTC"}
    assert (env(trainer), env(transform)) == ({**common, "A": "1"}, common)
    assert (trainer.image, transform.image) == ("other:2", "base:1")
    given = trainer.resources
    assert (given.cpu_limit, given.memory_limit) == (4, 64)
    assert (given.accelerator.type, given.accelerator.count) == ("NVIDIA_TESLA_T4", 2)
    assert transform.resources.memory_limit == 16
    tasks = tasks_of(job["pipelineSpec"])
    assert tasks["Trainer"]["retryPolicy"] == {
        "maxRetryCount": 4,
        "backoffDuration": "30s",
        "backoffFactor": 2.0,
        "backoffMaxDuration": "3600s",
    }
    assert tasks["Transform"]["retryPolicy"]["maxRetryCount"] == 1
    # It would fail the same way again.
    assert "retryPolicy" not in tasks["DataGate"]


def test_nodes_with_beam_may_use_dataflow(project):
    from runners.cloud.image import image_of

    job = cloud_job(
        config_of(project, "digits"),
        project="my-project",
        region="europe-west4",
        image="i",
        network="projects/1/global/networks/mine",
        beam={"runner": "dataflow", "nodes": ["StatisticsGen"], "max_workers": 9},
    )

    def options(node):
        args = list(container(job, node).args)
        return args[args.index("--json_serialized_inputs_spec_args") + 2 :]

    assert options("StatisticsGen") == [
        "--runner=DataflowRunner",
        "--project=my-project",
        "--region=europe-west4",
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


def test_the_image_is_that_of_the_code(project):
    """Found: fingerprints were the laptop's, and nothing tied them to the image."""
    from runners.cloud.image import image_of

    gpu = {"accelerator": {"type": "NVIDIA_TESLA_T4"}}
    config = config_of(project, "digits")
    job = cloud_job(config, image="host/sluice", nodes={"Trainer": gpu})
    images = {gpu: image_of(project, gpu=gpu) for gpu in (False, True)}
    for node in ("Pusher", "WriteReport"):
        assert container(job, node).image == images[False].name("host/sluice")
    assert container(job, "Trainer").image == images[True].name("host/sluice")


def test_kubeflow_gets_what_it_can_run(project):
    config = config_of(project, "digits")
    tasks = by_id(cloud_job(config, engine="kubeflow"))
    assert not any(task.is_exit_handler for task in tasks.values())
    commands = {tuple(task.executor.container.command) for task in tasks.values()}
    assert commands == {("python", "-m", "components.kubeflow_entrypoint")}
    found = tasks["LatestBlessedModel"].executor.container
    assert env(found)["TF_USE_LEGACY_KERAS"] == "1"


def test_a_scheduled_run_stops_where_there_is_nothing_new(project):
    """Found: `spans` of a schedule are a constant cache key, and nothing stops it.

    Later: serving requests were ingested without new data, too.
    """
    requests = "data.serving='sent-*'"
    config = config_of(project, "digits", overrides=[SPANS, requests])
    job = cloud_job(config, scheduled=True)
    assert "spans" not in parameters_of(job)
    tasks = by_id(job)
    gen = tasks["TFRecordGen"]
    assert not gen.task.caching_options.enable_cache
    assert gen.parameters["spans"] == ""
    test = "(inputs.artifacts['examples'].artifacts[0].metadata['new_data'] == 1.0)"
    conditions = {name: task.condition for name, task in tasks.items()}
    conditions = {name: found for name, found in conditions.items() if found}
    readers = {"StatisticsGen", "Transform", "Evaluator", "AdvanceWatermark"}
    assert conditions == dict.fromkeys({*readers, "ServingTFRecordGen"}, test)
    skipped = {*conditions}
    for name, task in tasks.items():
        skipped |= {name} if skipped & {*task.upstream} else set()
    assert {"ServingStatisticsGen", "Trainer", "Pusher"} <= skipped
    last = tasks["AdvanceWatermark"]
    assert {"TFRecordGen", "Pusher", "AcceptData", "DataGate"} < set(last.upstream)

    def mark(*overrides, **cloud):
        config = config_of(project, "digits", overrides=[SPANS, *overrides])
        tasks = by_id(cloud_job(config, scheduled=True, **cloud))
        named = tasks["AdvanceWatermark"].parameters["watermark"]
        schedule = tasks["TFRecordGen"].parameters["schedule"]
        assert json.loads(schedule)["watermark"] == named
        return named

    before = mark()
    assert before.startswith("gs://bucket/root/digits/state/watermarks/")
    assert mark(image="other:1", labels={"a": "b"}) == before
    # Another training, so the same data is trained on once more.
    assert mark("train.epochs=3") != before


def test_destinations_of_the_pusher(project):
    registry = {"serving_image": "serving", "labels": {"team": "a"}}
    job = cloud_job(
        config_of(project, "digits"),
        project="my-project",
        region="europe-west4",
        push={"registry": registry, "endpoint": {"max_replicas": 3}},
    )
    found = json.loads(by_id(job)["Pusher"].parameters["custom_config"])
    assert found["registry"] == {
        "model": "digits",
        "serving_image": "serving",
        "labels": {"team": "a"},
        "project": "my-project",
        "region": "europe-west4",
    }
    assert found["endpoint"] == {
        "name": "digits",
        "machine_type": "n1-standard-2",
        "accelerator": None,
        "min_replicas": 1,
        "max_replicas": 3,
        "traffic_percent": 100,
    }


def test_the_exit_handler_waits_for_all_and_gets_the_config(project):
    job = cloud_job(config_of(project, "digits", overrides=[SPANS]))
    tasks = by_id(job)
    handler = tasks["WriteReport"]
    assert handler.is_exit_handler
    stored = json.loads(handler.parameters["config"])
    assert stored["config"]["name"] == "digits"
    root = job["pipelineSpec"]["root"]["dag"]["tasks"]
    assert set(root) == {"tfx-dag", "WriteReport"}
    assert root["tfx-dag"]["inputs"]["parameters"].keys() == parameters_of(job).keys()
    assert tasks["TFRecordGen"].parameters["spans"] is None


OWN = """
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.components.base.base_driver import BaseDriver
from tfx.types.artifact import Artifact
from tfx.types.standard_artifacts import Model

@component
def Read(model: InputArtifact[Model]):
    pass

class Driver(BaseDriver):
    pass

class Driven(Read):
    DRIVER_CLASS = Driver

class Nameless(Artifact):
    TYPE_NAME = "Nameless"

@component
def Write(made: OutputArtifact[Nameless]):
    pass
"""


@pytest.mark.parametrize(
    ("node", "says"),
    [
        (
            "{component: 'own_nodes:Driven', inputs: {model: Trainer.model}}",
            "does not run the driver of Own, own_nodes.Driver",
        ),
        ("{component: 'own_nodes:Write'}", "TFX cannot compile .*: .*'?Nameless'?"),
    ],
)
def test_a_node_that_the_service_cannot_run(project, monkeypatch, node, says):
    from runners.cloud.compile_job import compile_pipeline

    (project / "own_nodes.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(project))
    config = config_of(project, "digits", overrides=[f"nodes={{Own: {node}}}"])
    with pytest.raises(ConfigError, match=says):
        compile_pipeline(cloud_config(config))
