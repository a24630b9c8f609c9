"""Compiled pipelines adapted to Kubeflow Pipelines."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from runners.cloud.kubeflow_spec import for_kubeflow
from runners.cloud.spec import Constant, Spec, read_spec

pytestmark = pytest.mark.unit

_TFX = "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor"
_MODEL = {"artifactType": {"instanceSchema": "title: tfx.Model\ntype: object\n"}}
_BLESSING = {"artifactType": {"instanceSchema": "title: tfx.ModelBlessing\n"}}


def _container() -> dict[str, Any]:
    args = ["--executor_class_path", "a.B"]
    command = ["python", "-m", _TFX]
    return {"container": {"image": "image", "command": command, "args": args}}


def _output_of(task: str, key: str) -> dict[str, Any]:
    return {"taskOutputArtifact": {"producerTask": task, "outputArtifactKey": key}}


def _job() -> dict[str, Any]:
    """A trainer, an evaluator and a gate without outputs."""
    components: dict[str, Any] = {
        "Trainer": {"outputDefinitions": {"artifacts": {"model": _MODEL}}},
        "Evaluator": {
            "inputDefinitions": {"artifacts": {"model": _MODEL}},
            "outputDefinitions": {"artifacts": {"blessing": _BLESSING}},
        },
        "Gate": {"inputDefinitions": {"artifacts": {"blessing": _BLESSING}}},
    }
    inputs: dict[str, dict[str, Any]] = {
        "Evaluator": {"model": _output_of("Trainer", "model")},
        "Gate": {"blessing": _output_of("Evaluator", "blessing")},
    }
    executors: dict[str, Any] = {}
    tasks: dict[str, Any] = {}
    for name, component in components.items():
        component["executorLabel"] = f"{name}_executor"
        executors[f"{name}_executor"] = _container()
        tasks[name] = {
            "componentRef": {"name": name},
            "taskInfo": {"name": name},
            "inputs": {"artifacts": inputs.get(name, {})},
            "dependentTasks": sorted(
                source["taskOutputArtifact"]["producerTask"]
                for source in inputs.get(name, {}).values()
            ),
        }
    root: dict[str, Any] = {"dag": {"tasks": tasks}}
    return {
        "displayName": "digits",
        "runtimeConfig": {"gcsOutputDirectory": "gs://b/root"},
        "pipelineSpec": {
            "pipelineInfo": {"name": "digits"},
            "schemaVersion": "2.1.0",
            "sdkVersion": "tfx-1.16.0",
            "components": components,
            "deploymentSpec": {"executors": executors},
            "root": root,
        },
    }


def _adapt(job: dict[str, Any]) -> Spec:
    return read_spec(for_kubeflow(job, task_records="gs://b/tasks"))


def test_every_container_starts_with_our_entry_point_and_its_task_record() -> None:
    for task in _adapt(_job()).tasks:
        executor: Any = task.executor
        assert executor.command == ("python", "-m", "components.kubeflow_entrypoint")
        assert executor.args[-4:] == (
            *("--task_records", "gs://b/tasks"),
            *("--task", task.id),
        )


def test_only_a_task_without_outputs_is_given_the_id_of_its_run() -> None:
    spec = _adapt(_job())
    given = {
        task.id: task.parameters["sluice_job"]
        for task in spec.tasks
        if "sluice_job" in task.parameters
    }
    assert given == {"Gate": Constant("{{$.pipeline_job_uuid}}")}
    assert not spec.task("Gate").cached


def test_a_container_with_another_command_and_the_given_job_stay_as_they_are() -> None:
    job = _job()
    own = job["pipelineSpec"]["deploymentSpec"]["executors"]["Gate_executor"]
    own["container"]["command"] = ["bash", "-c"]
    before = copy.deepcopy(job)
    executor: Any = _adapt(job).task("Gate").executor
    assert executor.command == ("bash", "-c")
    assert executor.args == ("--executor_class_path", "a.B")
    assert job == before
