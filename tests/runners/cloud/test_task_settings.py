"""What the config lays over the tasks of a spec, and what it refuses to."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.config.cloud import Cloud
from pipeline.config.config import Config
from pipeline.config.load import load_config
from runners.cloud.compile_spec import check_cloud
from runners.cloud.task_settings import set_defaults, skip_without_new_data
from sluice.errors import ConfigError

pytestmark = pytest.mark.unit

ROOT = {"root": "gs://bucket/root"}
JOB = {"machine_type": "n1-standard-8", "workers": 2}


def _config(**cloud: Any) -> Config:
    section = Cloud.model_validate({**ROOT, **cloud})
    return load_config("digits").model_copy(update={"cloud": section})


@pytest.mark.parametrize(
    ("cloud", "message"),
    [
        ({"root": None}, r"cloud\.root is not set"),
        (
            {"nodes": {"Transform": {"machine_type": "n1-standard-8"}}},
            "only the Trainer has machine_type, workers and tpu",
        ),
        (
            {"engine": "kubeflow", "nodes": {"Trainer": JOB}},
            "Kubeflow Pipelines runs each node in one pod",
        ),
        (
            {"nodes": {"Trainer": {"workers": 2}}},
            r"expected: cloud\.project, cloud\.region, "
            r"cloud\.nodes\.Trainer\.machine_type",
        ),
        (
            {"beam": {"runner": "dataflow"}},
            r"expected: cloud\.project, cloud\.region, cloud\.image",
        ),
        (
            {"project": "p", "region": "r", "push": {"endpoint": {}}},
            r"expected: cloud\.push\.registry",
        ),
        (
            {"push": {"registry": {"serving_image": "s"}}},
            r"expected: cloud\.project, cloud\.region",
        ),
    ],
)
def test_what_an_engine_cannot_do(cloud: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_cloud(_config(**cloud))


FILLED_IN = [
    "cloud.root=gs://bucket/root",
    "cloud.project=p",
    "cloud.region=r",
    "cloud.image=host/sluice",
]


@pytest.mark.parametrize(
    "profile", ["vertex", "vertex-gpu", "vertex-tpu", "vertex-dataflow", "kubeflow"]
)
def test_the_bundled_profiles_lack_only_what_is_the_users(profile: str) -> None:
    with pytest.raises(ConfigError, match=r"cloud\.root is not set"):
        check_cloud(load_config("digits", profile=profile))
    check_cloud(load_config("digits", profile=profile, overrides=FILLED_IN))


def test_a_config_without_the_section_names_the_profiles() -> None:
    with pytest.raises(ConfigError, match="--profile vertex or --profile kubeflow"):
        check_cloud(load_config("digits"))


def _spec(nested: bool) -> dict[str, Any]:
    source = {"producerTask": "Gen", "outputArtifactKey": "examples"}
    other = {"producerTask": "Gen", "outputArtifactKey": "quarantine"}
    tasks: dict[str, Any] = {
        "Gen": {},
        "Reader": {"inputs": {"artifacts": {"data": {"taskOutputArtifact": source}}}},
        "Guarded": {
            "inputs": {"artifacts": {"examples": {"taskOutputArtifact": source}}},
            "triggerPolicy": {"condition": "(1 == 1)"},
        },
        "Other": {"inputs": {"artifacts": {"q": {"taskOutputArtifact": other}}}},
    }
    inputs = {"parameters": {"a": {"parameterType": "STRING"}}}
    if not nested:
        root = {"dag": {"tasks": tasks}, "inputDefinitions": inputs}
        return {"root": root, "components": {}}
    return {
        "root": {"dag": {"tasks": {"tfx-dag": {}}}, "inputDefinitions": inputs},
        "components": {"tfx-dag": {"dag": {"tasks": tasks}}},
    }


@pytest.mark.parametrize("nested", [False, True])
def test_readers_of_new_data_are_skipped_without_it(nested: bool) -> None:
    spec = _spec(nested)
    skip_without_new_data(spec, "Gen", "examples", "new_data")
    found = spec["components"]["tfx-dag"] if nested else spec["root"]
    conditions = {
        name: task.get("triggerPolicy", {}).get("condition")
        for name, task in found["dag"]["tasks"].items()
    }
    test = "(inputs.artifacts['{}'].artifacts[0].metadata['new_data'] == 1.0)"
    assert conditions == {
        "Gen": None,
        "Reader": test.format("data"),
        "Guarded": "(1 == 1) && " + test.format("examples"),
        "Other": None,
    }


def test_parameters_reach_the_tasks_of_a_pipeline_with_an_exit_handler() -> None:
    """TFX's compiler nests the tasks then, and does not pass the parameters on."""
    spec = _spec(nested=True)
    set_defaults(spec, {"a": "x"})
    declared = {"parameterType": "STRING", "defaultValue": "x", "isOptional": True}
    assert spec["root"]["inputDefinitions"]["parameters"] == {"a": declared}
    nested = spec["components"]["tfx-dag"]["inputDefinitions"]["parameters"]
    assert nested == {"a": declared}
    assert spec["root"]["dag"]["tasks"]["tfx-dag"]["inputs"]["parameters"] == {
        "a": {"componentInputParameter": "a"}
    }
