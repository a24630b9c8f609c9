"""Reading of compiled pipelines, with specs of a few lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runners.cloud.spec import (
    Constant,
    Container,
    FinalStatus,
    Importer,
    PipelineParameter,
    Resolver,
    RetryPolicy,
    TaskOutput,
    load_spec,
    read_spec,
)
from sluice.errors import ConfigError, UsageError

pytestmark = pytest.mark.unit

EXAMPLES = {"artifactType": {"instanceSchema": "title: tfx.Examples\ntype: object\n"}}
MODEL = {"artifactType": {"schemaTitle": "tfx.Model"}}


def _job() -> dict[str, Any]:
    tasks = {
        "Train": {
            "componentRef": {"name": "Train"},
            "dependentTasks": ["Gate", "Read"],
            "inputs": {
                "artifacts": {
                    "examples": {
                        "taskOutputArtifact": {
                            "producerTask": "Read",
                            "outputArtifactKey": "examples",
                        }
                    }
                },
                "parameters": {
                    "steps": {"runtimeValue": {"constant": 5.0}},
                    "spans": {"componentInputParameter": "spans"},
                },
            },
            "retryPolicy": {"maxRetryCount": 2, "backoffDuration": "1.5s"},
            "triggerPolicy": {"condition": "1.0 == 1.0"},
            "cachingOptions": {"enableCache": True},
        },
        "Gate": {"componentRef": {"name": "Gate"}},
        "Read": {"componentRef": {"name": "Read"}},
        "Find": {"componentRef": {"name": "Find"}},
    }
    train = {
        "executorLabel": "Train",
        "inputDefinitions": {
            "artifacts": {"examples": EXAMPLES},
            "parameters": {
                "steps": {"parameterType": "NUMBER_INTEGER"},
                "spans": {"parameterType": "STRING"},
                "seed": {"parameterType": "NUMBER_INTEGER", "defaultValue": 7.0},
            },
        },
        "outputDefinitions": {
            "artifacts": {"model": MODEL},
            "parameters": {"loss": {"parameterType": "NUMBER_DOUBLE"}},
        },
    }
    container = {
        "image": "image",
        "command": ["python", "-m", "entry"],
        "args": ["{{$}}"],
        "env": [{"name": "TF_USE_LEGACY_KERAS", "value": "1"}],
        "resources": {"cpuLimit": 4.0},
        "lifecycle": {"preCacheCheck": {"command": ["driver"], "args": ["{{$}}"]}},
    }
    return {
        "displayName": "digits",
        "labels": {"team": "a"},
        "runtimeConfig": {
            "gcsOutputDirectory": "gs://bucket/root",
            "parameterValues": {"spans": "7"},
        },
        "pipelineSpec": {
            "schemaVersion": "2.1.0",
            "sdkVersion": "tfx-1.16.0",
            "pipelineInfo": {"name": "digits"},
            "root": {
                "dag": {"tasks": tasks},
                "inputDefinitions": {
                    "parameters": {
                        "spans": {"parameterType": "STRING", "defaultValue": ""}
                    }
                },
            },
            "components": {
                "Train": train,
                "Gate": {"executorLabel": "Gate"},
                "Find": {"executorLabel": "Find"},
                "Read": {
                    "executorLabel": "Read",
                    "outputDefinitions": {"artifacts": {"examples": EXAMPLES}},
                },
            },
            "deploymentSpec": {
                "executors": {
                    "Train": {"container": container},
                    "Gate": {"container": {"image": "image"}},
                    "Read": {
                        "importer": {
                            "artifactUri": {"constant": "gs://bucket/data"},
                            "typeSchema": EXAMPLES["artifactType"],
                            "metadata": {"span": 3.0},
                        }
                    },
                    "Find": {
                        "resolver": {
                            "outputArtifactQueries": {"model": {"filter": "state=LIVE"}}
                        }
                    },
                }
            },
        },
    }


def test_a_task_is_one_value() -> None:
    spec = read_spec(_job())
    assert spec.name == "digits"
    assert spec.pipeline_root == "gs://bucket/root"
    assert spec.parameter_values == {"spans": "7"}
    assert spec.parameters["spans"].default == ""
    train = spec.task("Train")
    assert train.artifacts == {"examples": TaskOutput("Read", "examples")}
    assert train.parameters == {
        "steps": Constant(5.0),
        "spans": PipelineParameter("spans"),
    }
    assert train.artifact_types["examples"].title == "tfx.Examples"
    assert train.parameter_types["seed"].default == 7.0
    assert train.outputs["model"].title == "tfx.Model"
    assert train.output_parameters == {"loss": "NUMBER_DOUBLE"}
    assert train.upstream == ("Gate", "Read")
    assert train.condition == "1.0 == 1.0"
    assert train.cached
    assert train.retry == RetryPolicy(2, backoff_s=1.5)
    assert isinstance(train.executor, Container)
    assert train.executor.env == {"TF_USE_LEGACY_KERAS": "1"}
    assert train.executor.resources == {"cpuLimit": 4.0}
    assert train.executor.driver and train.executor.driver.command == ("driver",)
    assert isinstance(spec.task("Read").executor, Importer)
    assert spec.task("Find").executor == Resolver({"model": "state=LIVE"})


def test_tasks_are_in_topological_order() -> None:
    order = [task.id for task in read_spec(_job()).tasks]
    assert order.index("Train") > max(order.index("Gate"), order.index("Read"))


def test_exit_handler_is_last_and_the_nested_graph_is_flat() -> None:
    """TFX wraps all tasks in the graph ``tfx-dag`` if there is an exit handler."""
    job = _job()
    spec = job["pipelineSpec"]
    spec["components"]["tfx-dag"] = {"dag": spec["root"]["dag"]}
    spec["root"]["dag"] = {
        "tasks": {
            "AtEnd": {
                "componentRef": {"name": "Gate"},
                "dependentTasks": ["tfx-dag"],
                "inputs": {
                    "parameters": {
                        "status": {"taskFinalStatus": {"producerTask": "tfx-dag"}}
                    }
                },
                "triggerPolicy": {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"},
            },
            "tfx-dag": {
                "componentRef": {"name": "tfx-dag"},
                "inputs": {
                    "parameters": {"spans": {"componentInputParameter": "spans"}}
                },
            },
        }
    }
    found = read_spec(job)
    assert found.tasks[-1] is found.exit_handler
    assert found.exit_handler.id == "AtEnd"
    assert found.exit_handler.parameters == {"status": FinalStatus()}
    assert found.task("Train").parameters["spans"] == PipelineParameter("spans")


def test_parameter_that_a_nested_graph_is_not_given_is_an_error() -> None:
    """TFX declares parameters of the root only, also where the tasks are below it."""
    job = _job()
    spec = job["pipelineSpec"]
    spec["components"]["tfx-dag"] = {"dag": spec["root"]["dag"]}
    spec["root"]["dag"] = {"tasks": {"tfx-dag": {"componentRef": {"name": "tfx-dag"}}}}
    with pytest.raises(ConfigError, match=r"Train, parameter 'spans' cannot") as caught:
        read_spec(job)
    assert caught.value.actual == "'spans', which is no input of its graph"


def test_spec_2_0_is_refused() -> None:
    job = _job()
    job["pipelineSpec"]["schemaVersion"] = "2.0.0"
    with pytest.raises(ConfigError, match=r"spec 2\.1 only") as caught:
        read_spec(job, "job.json")
    assert caught.value.where == "job.json"


def test_loop_is_refused() -> None:
    job = _job()
    tasks = job["pipelineSpec"]["root"]["dag"]["tasks"]
    tasks["Gate"]["parameterIterator"] = {}
    with pytest.raises(ConfigError, match="Gate cannot be run") as caught:
        read_spec(job)
    assert caught.value.actual == "a loop (parameterIterator)"


@pytest.mark.parametrize(
    ("upstream", "message"),
    [("Nowhere", "task 'Nowhere', which is missing"), ("Train", "Train -> Gate")],
)
def test_tasks_that_cannot_be_ordered(upstream: str, message: str) -> None:
    job = _job()
    tasks = job["pipelineSpec"]["root"]["dag"]["tasks"]
    tasks["Gate"]["dependentTasks"] = [upstream]
    with pytest.raises(ConfigError) as caught:
        read_spec(job)
    assert message in str(caught.value)


def test_file_may_be_json_or_yaml(tmp_path: Path) -> None:
    job = _job()
    (tmp_path / "job.json").write_text(json.dumps(job))
    # JSON is YAML; TFX writes the bare spec, under comments, into a YAML file.
    bare = "# PIPELINE DEFINITION\n" + json.dumps(job["pipelineSpec"])
    (tmp_path / "job.yaml").write_text(bare)
    whole, plain = (load_spec(tmp_path / name) for name in ("job.json", "job.yaml"))
    assert whole.tasks == plain.tasks
    assert plain.pipeline_root == ""
    assert whole.digest != plain.digest


def test_digest_ignores_the_order_of_keys() -> None:
    job = _job()
    assert read_spec(job).digest == read_spec(dict(reversed(job.items()))).digest


def test_file_that_is_no_pipeline(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_spec(tmp_path / "missing.json")
    path = tmp_path / "job.json"
    for text in ("{", "[]", "{}"):
        path.write_text(text)
        with pytest.raises(ConfigError) as caught:
            load_spec(path)
        assert str(path) in str(caught.value)
