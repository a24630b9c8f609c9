"""What each profile compiles to, as a text that a person reviews in a diff.

``UPDATE_GOLDEN=1 pytest tests/runners/cloud/test_golden_specs.py`` writes the files of
``golden/`` anew. Parameters that a local run has are left out: ``test_same_graph``
compares them. Fingerprints and digests are masked, so that the files hold for each
version of TFX.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.cloud import aiplatform_v1
from google.protobuf import json_format
from kfp.pipeline_spec.pipeline_spec_pb2 import PipelineJob

from runners.cloud.image import image_of
from runners.cloud.spec import Task, read_spec
from tests.kit.page_text import check_golden
from tests.pipeline.graph.compiled import config_of, env, parameters_of

pytestmark = pytest.mark.tf

GOLDEN = Path(__file__).parent / "golden"
PLACE = (
    "data.dir=gs://bucket/data",
    "cloud.root=gs://bucket/root",
    "cloud.image=host/sluice",
)
VERTEX = (*PLACE, "cloud.project=my-project", "cloud.region=europe-west4")
# Each file has a profile, and keys beside those of the profile.
SPECS = {
    "vertex": (
        *VERTEX,
        "data.serving='sent-*'",
        "cloud.env={TZ: UTC}",
        "cloud.nodes.Transform={cache: false, image: 'other:2', env: {A: '1'}}",
        "cloud.push.registry={serving_image: serving, labels: {use: b}}",
        "cloud.push.endpoint={max_replicas: 3}",
    ),
    "vertex-scheduled": (*VERTEX, "data.serving='sent-*'"),
    "vertex-gpu": VERTEX,
    "vertex-gpu-workers": (
        *VERTEX,
        "cloud.service_account=nodes@my-project.iam.gserviceaccount.com",
        "cloud.nodes.Trainer.machine_type=n1-standard-8",
        "cloud.nodes.Trainer.workers=3",
    ),
    "vertex-tpu": VERTEX,
    "vertex-dataflow": (*VERTEX, "cloud.network=projects/1/global/networks/mine"),
    "kubeflow-scheduled": (
        *PLACE,
        "retrain.metric_drop=[{metric: accuracy, lower_bound: 0.9}]",
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_what_a_profile_compiles_to(project: Path, name: str) -> None:
    from runners.cloud.compile_job import compile_pipeline
    from runners.cloud.vertex_client import message_of, vertex_job

    profile = name.removesuffix("-scheduled").removesuffix("-workers")
    config = config_of(project, "digits", profile=profile, overrides=SPECS[name])
    job, _ = compile_pipeline(config, scheduled=name.endswith("-scheduled"))
    json_format.ParseDict({**job, "pipelineSpec": {}}, PipelineJob())
    if profile != "kubeflow":
        message_of(vertex_job(config, job, {}))
    found = described(job)
    if custom_job := found["trainer_config"].get("ai_platform_training_args"):
        aiplatform_v1.CustomJobSpec(custom_job["job_spec"])
    text = yaml.safe_dump(found, width=88, sort_keys=False, default_flow_style=None)
    for gpu, shown in ((False, "CODE"), (True, "GPU-CODE")):
        text = text.replace(image_of(project, gpu=gpu).fingerprint[:16], shown)
    text = re.sub(r"\b([0-9a-f]{64}|[0-9a-f]{32})\b", "DIGEST", text)
    check_golden(GOLDEN / f"{name}.yaml", text)


def described(job: dict[str, Any]) -> dict[str, Any]:
    """Returns parameters and tasks of a job; what most tasks have is there once."""
    spec, declared = read_spec(job), parameters_of(job)
    parameters = {
        name: item.get("defaultValue", "to be given")
        for name, item in sorted(declared.items())
    }
    trainer = json.loads(parameters.pop("trainer_config"))
    train = {key: trainer["train"][key] for key in TRAIN if key in trainer["train"]}
    custom_job = {key: trainer[key] for key in trainer if key.startswith("ai_")}
    given = {name: f"<{name}>" for name in declared}
    with_values = read_spec({**job, "runtimeConfig": {"parameterValues": given}})
    tasks = {task.id: settings_of(task) for task in with_values.tasks}
    most = {key: most_common(task[key] for task in tasks.values()) for key in COMMON}
    return {
        "root": spec.root,
        "labels": {k: v for k, v in job["labels"].items() if not k.startswith("tfx")},
        "parameters": parameters,
        "trainer_config": {"train": train, **custom_job},
        "most_tasks": most,
        "tasks": {
            name: {
                key: value
                for key, value in task.items()
                if value != most.get(key) and (value or key in COMMON)
            }
            for name, task in tasks.items()
        },
    }


TRAIN = ("strategy", "batch_size", "batch_per_replica", "precision")
_SHOWN = "gs://|^<|registry"
_INPUTS = "--json_serialized_inputs_spec_args"
COMMON = ("kind", "image", "command", "env", "resources", "cached", "retries")


def settings_of(task: Task) -> dict[str, Any]:
    """Returns what the service does with a task."""
    container, policy = task.executor.container, task.task.retry_policy
    args = list(container.args)
    options = args.index(_INPUTS) + 2
    return {
        "upstream": list(task.upstream),
        "condition": task.condition,
        "is_exit_handler": task.is_exit_handler,
        "executor": args[1],
        "options": args[options:],
        "parameters": {
            key: plain(value)
            for key, value in sorted(task.parameters.items())
            if re.search("gs://|^<|registry|ai_platform", str(value))
            and key not in ("config", "settings")
        },
        "kind": task.executor.WhichOneof("spec"),
        "image": container.image,
        "command": " ".join(container.command),
        "env": env(container),
        "resources": json_format.MessageToDict(container.resources),
        "cached": task.task.caching_options.enable_cache,
        "retries": json_format.MessageToDict(policy),
    }


def plain(value: Any) -> Any:
    """Returns a value that may be JSON."""
    try:
        return json.loads(value)
    except ValueError:
        return value


def most_common(values: Iterable[Any]) -> Any:
    """Returns the value that most tasks have."""
    ((text, _),) = Counter(map(json.dumps, values)).most_common(1)
    return json.loads(text)
