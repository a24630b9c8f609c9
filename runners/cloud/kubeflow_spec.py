"""Adapts a compiled pipeline to Kubeflow Pipelines.

Vertex AI runs what TFX compiles; Kubeflow Pipelines runs a part of it (read in its
sources, August 2026): it refuses resolvers, its input artifacts have no type, and its
API tells no artifacts. So the latest blessed model is looked up by a container task,
and every container starts with ``components.kubeflow_entrypoint``.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

from components.kubeflow_entrypoint import JOB_PARAMETER
from runners.cloud.spec import Container, Spec

BASELINE = "baseline"
"""Runtime parameter: the baseline's URI, ``none``, or "" to look it up."""

ENTRYPOINT = ["python", "-m", "components.kubeflow_entrypoint"]
_TFX_ENTRYPOINT = "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor"
_LOOKUP = "LatestBlessedModel"
_RESOLVERS = (f"{_LOOKUP}-model-resolver", f"{_LOOKUP}-model-blessing-resolver")
_EXECUTOR = "components.baseline_model.latest_pushed.Executor"
_RUN_ID = "{{$.pipeline_job_uuid}}"  # Replaced by Kubeflow's driver, as a whole value.

_Spec = dict[str, Any]


def is_for_kubeflow(spec: Spec) -> bool:
    """Whether a compiled pipeline is one that ``for_kubeflow`` returned."""
    return any(
        isinstance(task.executor, Container) and [*task.executor.command] == ENTRYPOINT
        for task in spec.tasks
    )


def for_kubeflow(job: _Spec, *, task_records: str, serving_dir: str) -> _Spec:
    """Returns the compiled job as Kubeflow Pipelines can run it.

    Args:
      job: as TFX compiles it, with ``pipelineSpec`` and ``runtimeConfig``.
      task_records: folder on ``gs://`` for the task records of all runs.
      serving_dir: of the model store, in which the baseline is looked up.
    """
    job = copy.deepcopy(job)
    spec = job["pipelineSpec"]
    for name, owner in list(_dags(spec)):
        if _RESOLVERS[0] in owner["dag"]["tasks"]:
            _replace_resolvers(spec, owner, serving_dir)
            _declare_baseline(spec, name, owner)
    executors = spec["deploymentSpec"]["executors"]
    for _, owner in _dags(spec):
        for task_id, task in owner["dag"]["tasks"].items():
            component = spec["components"][task["componentRef"]["name"]]
            label = component.get("executorLabel", "")
            container = executors.get(label, {}).get("container")
            if container and _TFX_ENTRYPOINT in container.get("command", ()):
                container["command"] = ENTRYPOINT
                container["args"] += ["--task_records", task_records, "--task", task_id]
                if "outputDefinitions" not in component:
                    _add_run_id(task, component)
    return job


def _dags(spec: _Spec) -> Iterator[tuple[str | None, _Spec]]:
    """Yields each component that is a graph, with its name; None for the root."""
    yield None, spec["root"]
    for name, component in spec["components"].items():
        if "dag" in component:
            yield name, component


def _replace_resolvers(spec: _Spec, owner: _Spec, serving_dir: str) -> None:
    """Puts the container task in the place of the two resolvers."""
    tasks, executors = owner["dag"]["tasks"], spec["deploymentSpec"]["executors"]
    old = None
    for task_id in _RESOLVERS:
        old_name = tasks.pop(task_id)["componentRef"]["name"]
        component = spec["components"].pop(old_name)
        executors.pop(component["executorLabel"])
        if task_id == _RESOLVERS[0]:
            old = component["outputDefinitions"]
    parameters = {BASELINE: {"parameterType": "STRING"}}
    parameters["serving_dir"] = {"parameterType": "STRING"}
    inputs = {"parameters": parameters}
    label = f"{_LOOKUP}_executor"
    spec["components"][_LOOKUP] = {
        "executorLabel": label,
        "inputDefinitions": inputs,
        "outputDefinitions": old,
    }
    image = next(
        item["container"]["image"] for item in executors.values() if "container" in item
    )
    executors[label] = {
        "container": {
            "image": image,
            "command": ["python", "-m", _TFX_ENTRYPOINT],
            "args": [
                "--executor_class_path",
                _EXECUTOR,
                "--json_serialized_invocation_args",
                "{{$}}",
                "--json_serialized_inputs_spec_args",
                json.dumps(inputs),
            ],
        }
    }
    tasks[_LOOKUP] = {
        "cachingOptions": {"enableCache": False},
        "componentRef": {"name": _LOOKUP},
        "taskInfo": {"name": _LOOKUP},
        "inputs": {
            "parameters": {
                BASELINE: {"componentInputParameter": BASELINE},
                "serving_dir": {"runtimeValue": {"constant": serving_dir}},
            }
        },
    }
    for task in tasks.values():
        waits = task.get("dependentTasks", [])
        if set(waits) & set(_RESOLVERS):
            others = [name for name in waits if name not in _RESOLVERS]
            task["dependentTasks"] = sorted([*others, _LOOKUP])
        for source in task.get("inputs", {}).get("artifacts", {}).values():
            output = source.get("taskOutputArtifact", {})
            if output.get("producerTask") == _RESOLVERS[0]:
                output["producerTask"] = _LOOKUP


def _declare_baseline(spec: _Spec, name: str | None, owner: _Spec) -> None:
    """Declares the runtime parameter, and hands it down to a nested graph."""
    _parameters(spec["root"])[BASELINE] = {
        "parameterType": "STRING",
        "defaultValue": "",
        "isOptional": True,
    }
    if name is None:
        return
    _parameters(owner)[BASELINE] = {"parameterType": "STRING"}
    for task in spec["root"]["dag"]["tasks"].values():
        if task["componentRef"]["name"] == name:
            given = task.setdefault("inputs", {}).setdefault("parameters", {})
            given[BASELINE] = {"componentInputParameter": BASELINE}


def _parameters(component: _Spec) -> dict[str, Mapping[str, Any]]:
    return component.setdefault("inputDefinitions", {}).setdefault("parameters", {})


def _add_run_id(task: _Spec, component: _Spec) -> None:
    """Gives the run's id to a task without outputs, whose URIs would tell it."""
    _parameters(component)[JOB_PARAMETER] = {"parameterType": "STRING"}
    given = task.setdefault("inputs", {}).setdefault("parameters", {})
    given[JOB_PARAMETER] = {"runtimeValue": {"constant": _RUN_ID}}
    task["cachingOptions"] = {"enableCache": False}
