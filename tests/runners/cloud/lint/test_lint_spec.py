"""Findings in a compiled pipeline: that of digits, with one fault put in.

``digits_job.json`` is what TFX 1.16 compiles, without fingerprints and descriptions.
"""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.config import Config
from pipeline.config.load import load_config
from runners.cloud.lint.finding import Finding
from runners.cloud.lint.lint_spec import MAX_ARGUMENT_BYTES, lint_spec
from runners.cloud.spec import read_spec

pytestmark = pytest.mark.unit

Fault = Callable[[dict[str, Any]], None]
JOB = json.loads((Path(__file__).parent / "digits_job.json").read_text())
IMAGE = JOB["pipelineSpec"]["deploymentSpec"]["executors"]["Trainer_executor"][
    "container"
]["image"]
LATEST = 'schema_title="tfx.%s" AND state=LIVE'
GIVEN = ["cloud.root=gs://bucket/sluice", f"cloud.image={IMAGE}"]


def _config(*overrides: str) -> Config:
    return load_config("digits", overrides=[*GIVEN, *overrides])


def _lint(fault: Fault, *overrides: str) -> list[Finding]:
    job = copy.deepcopy(JOB)
    fault(job)
    return lint_spec(read_spec(job), _config(*overrides))


def _tasks(job: dict[str, Any]) -> Any:
    return job["pipelineSpec"]["root"]["dag"]["tasks"]


def _executor(job: dict[str, Any], task: str) -> Any:
    return job["pipelineSpec"]["deploymentSpec"]["executors"][f"{task}_executor"]


def _property(task: str, key: str, value: Any) -> Fault:
    def put(job: dict[str, Any]) -> None:
        given = _tasks(job)[task]["inputs"]["parameters"]
        given[key] = {"runtimeValue": {"constant": value}}

    return put


def _condition(text: str) -> Fault:
    return lambda job: _tasks(job)["Pusher"].update(triggerPolicy={"condition": text})


def _image(text: str) -> Fault:
    return lambda job: _executor(job, "Trainer")["container"].update(image=text)


def _type(title: str) -> Fault:
    def put(job: dict[str, Any]) -> None:
        component = job["pipelineSpec"]["components"]["TFRecordGen"]
        output = component["outputDefinitions"]["artifacts"]["quarantine"]
        output["artifactType"] = {"instanceSchema": f"title: {title}\ntype: object\n"}

    return put


def _query(text: str) -> Fault:
    queries = {"model_blessing": {"filter": text}}
    return lambda job: _executor(job, "LatestBlessedModel-model-blessing-resolver")[
        "resolver"
    ].update(outputArtifactQueries=queries)


def _class(path: str) -> Fault:
    def put(job: dict[str, Any]) -> None:
        _executor(job, "Trainer")["container"]["args"][1] = path

    return put


def test_a_pipeline_without_faults() -> None:
    assert _lint(lambda job: None) == []


@pytest.mark.parametrize(
    "text",
    [
        "(inputs.artifacts['model_blessing'].artifacts[0].metadata['blessed'] == 1.0)",
        "!(inputs.artifacts['model'].artifacts[0].uri == 'gs://a/b') && (2.5 < 3.0)",
    ],
)
def test_conditions_of_tfx(text: str) -> None:
    assert _lint(_condition(text)) == []


@pytest.mark.parametrize(
    ("fault", "where", "what", "fix"),
    [
        (
            lambda job: job["runtimeConfig"].update(gcsOutputDirectory="/data"),
            "pipeline root",
            "artifacts are written to /data",
            "set cloud.root",
        ),
        (
            _type("Own"),
            "TFRecordGen, output 'quarantine'",
            "the service has no artifact type 'Own'",
            "TYPE_NAME = 'package.ClassName'",
        ),
        (
            _type("tfx.Owm"),
            "TFRecordGen, output 'quarantine'",
            "'tfx.Owm'",
            "TYPE_NAME",
        ),
        (
            _condition("inputs.artifacts['model'].artifacts[0].value > 3.0"),
            "Pusher, condition",
            "the service cannot evaluate '.value > 3.0'",
            "compare properties, custom properties or URIs",
        ),
        (
            _condition("inputs.artifacts['x'].artifacts[0].uri == ''"),
            "Pusher, condition",
            "the task has no input 'x'",
            "add it to the inputs",
        ),
        (
            _query('schema_title="tfx.Model" AND span>3'),
            "LatestBlessedModel-model-blessing-resolver, output 'model_blessing'",
            "the service cannot look up",
            "look up by type, state, name and metadata",
        ),
        (
            _query(LATEST % "Artifact"),
            "LatestBlessedModel-model-blessing-resolver, output 'model_blessing'",
            "TFX looks up artifacts of your own types as tfx.Artifact, and finds none",
            "look up an artifact of a TFX type",
        ),
        (_image(""), "Trainer, image", "the task has no image", "set cloud.image"),
        (_image("a b"), "Trainer, image", "'a b' is not a reference", "REGISTRY/"),
        (
            _class("__main__.Executor"),
            "Trainer, executor",
            "__main__.Executor is defined in the program that compiles",
            "move it into a module",
        ),
        (
            _property("ImportSchemaGen", "schema_file", __file__),
            "ImportSchemaGen, schema_file",
            "test_lint_spec.py is on this machine",
            "gs:// address",
        ),
        (
            _property("TFRecordGen", "input_base", "configs/profiles"),
            "TFRecordGen, input_base",
            "configs/profiles is on this machine",
            "gs:// address",
        ),
        (
            _property("Trainer", "custom_config", json.dumps({"a": {"b": [__file__]}})),
            "Trainer, custom_config.a.b[0]",
            "is on this machine",
            "importlib.resources",
        ),
        (
            _property("Trainer", "custom_config", json.dumps({"k": f"ghp_{'0' * 36}"})),
            "Trainer, custom_config.k",
            "this is a GitHub token, which the run would show",
            "Secret Manager",
        ),
        (
            _property("Trainer", "custom_config", json.dumps({"words": "x" * 140_000})),
            "Trainer, custom_config",
            "a command line takes 131,072 in one argument",
            "write the value into a file at gs://",
        ),
    ],
)
def test_an_error(fault: Fault, where: str, what: str, fix: str) -> None:
    [found] = _lint(fault)
    assert found.severity == "error"
    assert found.where == where
    assert what in found.what
    assert fix in found.fix


def test_the_limit_of_an_argument_is_that_of_linux() -> None:
    fits = ["/bin/true", "x" * (MAX_ARGUMENT_BYTES - 1)]
    assert subprocess.run(fits).returncode == 0
    with pytest.raises(OSError, match="Argument list too long"):
        subprocess.run(["/bin/true", "x" * MAX_ARGUMENT_BYTES])


def test_the_largest_parameter_is_named_with_its_size() -> None:
    [found] = _lint(_property("Trainer", "run_fn", "x" * 130_000))
    assert found.where == "Trainer, run_fn"
    assert "130,002 of them here" in found.what


def test_a_runtime_parameter_is_checked_by_its_default_and_by_its_value() -> None:
    def make_parameter(job: dict[str, Any]) -> None:
        root = job["pipelineSpec"]["root"]
        declared = {"parameterType": "STRING", "defaultValue": __file__}
        root["inputDefinitions"] = {"parameters": {"config": declared}}
        given = _tasks(job)["Trainer"]["inputs"]["parameters"]
        given["custom_config"] = {"componentInputParameter": "config"}

    def set_it(job: dict[str, Any]) -> None:
        make_parameter(job)
        job["runtimeConfig"]["parameterValues"] = {"config": "{}"}

    assert [item.where for item in _lint(make_parameter)] == ["Trainer, custom_config"]
    assert _lint(set_it) == []


def test_a_lookup_by_type_alone_that_several_tasks_write() -> None:
    def put(job: dict[str, Any]) -> None:
        _query(LATEST % "Model")(job)
        components = job["pipelineSpec"]["components"]
        outputs = components["Transform"]["outputDefinitions"]["artifacts"]
        outputs["model"] = components["Trainer"]["outputDefinitions"]["artifacts"][
            "model"
        ]

    [found] = _lint(put)
    assert found.severity == "warning"
    assert found.what.startswith("2 tasks write a tfx.Model, and the lookup takes")


def test_an_image_of_the_config_gets_its_tag_later() -> None:
    assert _lint(_image(f"{IMAGE.rpartition(':')[0]}:ffff")) == []


def _names(found: list[Finding]) -> list[tuple[str, str]]:
    return [(item.where, item.what.partition(";")[0]) for item in found]


def test_what_kubeflow_lacks() -> None:
    def put(job: dict[str, Any]) -> None:
        components = job["pipelineSpec"]["components"]
        tasks = _tasks(job)
        components["Own_node"] = {"executorLabel": "Own_node_executor"}
        tasks["Own_node"] = {"componentRef": {"name": "Own_node"}}
        importer = {
            "artifactUri": {"constant": "gs://bucket/a"},
            "typeSchema": {"schemaTitle": "tfx.Model"},
        }
        executors = job["pipelineSpec"]["deploymentSpec"]["executors"]
        executors["Own_node_executor"] = {"importer": importer}
        tasks["Own_node"]["triggerPolicy"] = {"condition": "1.0 == 1.0"}
        args = executors["TFRecordGen_executor"]["container"]["args"]
        args[1] = "tfx.components.example_gen.import_example_gen.executor.Executor"
        executors["Trainer_executor"] = {
            "customJob": {"customJob": {"workerPoolSpecs": []}}
        }
        root = job["pipelineSpec"]["root"]
        declared = {"parameterType": "STRING", "defaultValue": "x" * 10_000}
        root["inputDefinitions"] = {"parameters": {"config": declared}}

    found = _lint(put, "cloud.engine=kubeflow")
    named = _names(found)
    for expected in [
        ("Own_node", "Kubeflow takes no task named 'Own_node'"),
        ("Own_node", "Kubeflow has no importer with a condition"),
        ("Trainer", "Kubeflow has no custom jobs"),
        (
            "LatestBlessedModel-model-resolver",
            "Kubeflow cannot look up artifacts of earlier runs",
        ),
        (
            "TFRecordGen",
            "Kubeflow does not run TFX's driver, so spans and patterns stay unresolved",
        ),
        (
            "StatisticsGen",
            "Kubeflow does not tell containers the types of their inputs, which TFX's "
            "entry point needs",
        ),
        ("runtime parameters", "they have 10,014 bytes"),
    ]:
        assert expected in named
    assert {item.severity for item in found} == {"error"}


def test_a_large_pipeline_on_kubeflow_is_a_warning() -> None:
    def put(job: dict[str, Any]) -> None:
        for task in _tasks(job):
            if "container" in _executor(job, task):
                _executor(job, task)["container"]["command"] = ["x" * 90_000]

    found = _lint(put, "cloud.engine=kubeflow")
    [warned] = [item for item in found if item.severity == "warning"]
    assert "Kubernetes stores objects of about 1,000,000" in warned.what
