"""Adapts a compiled pipeline to Kubeflow Pipelines.

Vertex AI runs what TFX compiles; Kubeflow Pipelines runs a part of it (read in its
sources, August 2026): its input artifacts have no type, and its API tells no artifacts.
So every container starts with ``components.kubeflow_entrypoint``.
"""

from __future__ import annotations

import copy
from typing import Any

from components.kubeflow_entrypoint import JOB_PARAMETER
from runners.cloud.spec import Container, Spec

ENTRYPOINT = ["python", "-m", "components.kubeflow_entrypoint"]
_TFX_ENTRYPOINT = "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor"
_RUN_ID = "{{$.pipeline_job_uuid}}"  # Replaced by Kubeflow's driver, as a whole value.

_Spec = dict[str, Any]


def is_for_kubeflow(spec: Spec) -> bool:
    """Whether a compiled pipeline is one that ``for_kubeflow`` returned."""
    return any(
        isinstance(task.executor, Container) and [*task.executor.command] == ENTRYPOINT
        for task in spec.tasks
    )


def for_kubeflow(job: _Spec, *, task_records: str) -> _Spec:
    """Returns the compiled job as Kubeflow Pipelines can run it.

    Args:
      job: as TFX compiles it, with ``pipelineSpec`` and ``runtimeConfig``.
      task_records: folder on ``gs://`` for the task records of all runs.
    """
    job = copy.deepcopy(job)
    spec = job["pipelineSpec"]
    executors = spec["deploymentSpec"]["executors"]
    for owner in (spec["root"], *spec["components"].values()):
        for task_id, task in owner.get("dag", {}).get("tasks", {}).items():
            component = spec["components"][task["componentRef"]["name"]]
            label = component.get("executorLabel")
            container = executors.get(label, {}).get("container")
            if container and _TFX_ENTRYPOINT in container.get("command", ()):
                container["command"] = ENTRYPOINT
                container["args"] += ["--task_records", task_records, "--task", task_id]
                if "outputDefinitions" not in component:
                    _add_run_id(task, component)
    return job


def _add_run_id(task: _Spec, component: _Spec) -> None:
    """Gives the run's id to a task without outputs, whose URIs would tell it."""
    inputs = component.setdefault("inputDefinitions", {})
    declared = inputs.setdefault("parameters", {})
    declared[JOB_PARAMETER] = {"parameterType": "STRING"}
    given = task.setdefault("inputs", {}).setdefault("parameters", {})
    given[JOB_PARAMETER] = {"runtimeValue": {"constant": _RUN_ID}}
    task["cachingOptions"] = {"enableCache": False}
