"""Lays the ``cloud`` section over the tasks of a compiled spec.

TFX's compiler knows one cache switch, one environment and no retries for all nodes.
Here each task gets its own, from the config and from what its node does. The Beam
pipelines inside the nodes run in-process, or on Dataflow.

A container task has CPUs, memory and GPUs, but no machine type, no TPU topology and no
second machine. With one of these the Trainer's task runs TFX's executor for Vertex AI,
which starts a custom job with the same arguments, and waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.config.cloud import Cloud, NodeResources
from pipeline.config.config import Config
from pipeline.graph.beam_arguments import LOCAL_BEAM_ARGS, dataflow_args
from pipeline.graph.node_registry import TRAINER
from pipeline.training.strategy.choice import LOCAL_TPU
from runners.cloud.image import image_of_beam
from sluice.node_kinds import NodeKind

# What TFX compiles starts with it. On Kubeflow Pipelines input artifacts have no type
# in the container, and no unique name (read in its sources, August 2026): ours does.
_TFX_ENTRYPOINT = "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor"
# The nested graph that TFX makes where there is an exit handler.
_NESTED = "tfx-dag"
# The executor that starts a custom job.
_EXECUTOR = "runners.cloud.custom_job.TrainerJob"

Json = dict[str, Any]


def tasks_of(spec: Json) -> Json:
    """Returns the tasks of the nodes, by id."""
    nested = spec["components"].get(_NESTED)
    return (nested or spec["root"])["dag"]["tasks"]


def _containers_of(spec: Json) -> Iterator[tuple[str, Json]]:
    """Yields each task's id and container, an exit handler's included."""
    executors = spec["deploymentSpec"]["executors"]
    for name, component in spec["components"].items():
        container = executors.get(component.get("executorLabel"), {}).get("container")
        if container is not None:
            yield name, container


def apply_settings(
    spec: Json, config: Config, kinds: dict[str, NodeKind], *, pinned: bool
) -> None:
    """Sets caching, retries, environment, resources and commands of all tasks.

    Args:
      spec: the compiled spec, which is changed.
      config: with a ``cloud`` section.
      kinds: of the nodes, by id.
      pinned: whether the spans of ingestion are part of its cache key.
    """
    cloud = config.cloud
    assert cloud is not None
    tasks = tasks_of(spec)
    for name, container in _containers_of(spec):
        wanted = cloud.of_node(name)
        container["env"] = [
            {"name": key, "value": value} for key, value in environment(wanted).items()
        ]
        if cloud.engine == "kubeflow" and _TFX_ENTRYPOINT in container["command"]:
            container["command"] = ["python", "-m", "components.kubeflow_entrypoint"]
        if name == TRAINER and wanted.needs_custom_job:
            args = container["args"]
            args[args.index("--executor_class_path") + 1] = _EXECUTOR
        elif resources := _resources(wanted):
            container["resources"] = resources
        if name not in tasks:
            continue
        kind = kinds[name]
        cached = is_cached(kind, wanted, pinned and cloud.engine == "vertex")
        tasks[name]["cachingOptions"] = {"enableCache": cached}
        if attempts := retries_of(name, kind, cloud):
            tasks[name]["retryPolicy"] = {
                "maxRetryCount": attempts,
                "backoffDuration": "30s",
                "backoffFactor": 2.0,
                # Kubeflow counts it from the task's start, so the longest there is.
                "backoffMaxDuration": "3600s",
            }


def is_cached(kind: NodeKind, resources: NodeResources, pinned: bool) -> bool:
    """Whether the service may reuse the outputs of an earlier run of a node.

    Not of nodes that read or write the baseline store or the serving directory, nor of
    ingestion whose cache key does not depend on the files.
    """
    if resources.cache is not None:
        return resources.cache
    if kind.ingests:
        return pinned
    looks_up = kind.resolver or kind.judges_data or kind.decides
    return not (looks_up or kind.accepts_data or kind.pushes)


def retries_of(name: str, kind: NodeKind, cloud: Cloud) -> int:
    """Returns how often a service repeats a node; a gate only if it is named.

    A service repeats after every failure, and a gate fails the same way again.
    """
    given = cloud.nodes.get(name) if kind.gate else cloud.of_node(name)
    return (given.retries or 0) if given else 0


def _resources(resources: NodeResources) -> Json:
    limits: Json = {}
    if resources.cpu is not None:
        limits["cpuLimit"] = resources.cpu
    if resources.memory_gb is not None:
        limits["memoryLimit"] = resources.memory_gb
    if resources.accelerator is not None:
        limits["accelerator"] = {
            "type": resources.accelerator.type,
            # JSON form of an int64.
            "count": str(resources.accelerator.count),
        }
    return limits


def skip_without_new_data(spec: Json, producer: str, output: str, key: str) -> None:
    """Adds a condition to the tasks that read an output of ingestion.

    The tasks behind a task that is skipped are skipped by the service.
    """
    for task in tasks_of(spec).values():
        for name, source in task.get("inputs", {}).get("artifacts", {}).items():
            if source["taskOutputArtifact"] == {
                "producerTask": producer,
                "outputArtifactKey": output,
            }:
                test = f"inputs.artifacts['{name}'].artifacts[0].metadata['{key}']"
                given = task.get("triggerPolicy", {}).get("condition")
                parts = [part for part in (given, f"({test} == 1.0)") if part]
                task["triggerPolicy"] = {"condition": " && ".join(parts)}


def set_defaults(spec: Json, defaults: dict[str, str]) -> None:
    """Declares default values of runtime parameters, which TFX's compiler drops.

    It does not pass them into the nested graph of an exit handler either.
    """
    inputs = spec["root"].get("inputDefinitions", {})
    declared = inputs.get("parameters", {})
    for name, value in defaults.items():
        declared[name]["defaultValue"] = value
        declared[name]["isOptional"] = True
    if declared and _NESTED in spec["components"]:
        spec["components"][_NESTED]["inputDefinitions"] = inputs
        spec["root"]["dag"]["tasks"][_NESTED]["inputs"] = {
            "parameters": {name: {"componentInputParameter": name} for name in declared}
        }


def beam_args(config: Config, node_id: str) -> list[str]:
    """Returns the Beam options of a node.

    In the node's own process they are those of local runs: what Beam's default runner
    is depends on its version, and on what can be downloaded.
    """
    cloud = config.cloud
    assert cloud is not None
    beam = cloud.beam
    named = beam.nodes is None or node_id in beam.nodes
    if beam.runner == "direct" or not named:
        return [*LOCAL_BEAM_ARGS, *(beam.args if beam.runner == "direct" else ())]
    return dataflow_args(config, image_of_beam(config))


def job_arguments(config: Config, image: str) -> dict[str, Any]:
    """Returns what the executor needs, as keys of the Trainer's ``custom_config``.

    Args:
      config: see ``check_service``.
      image: the Trainer's.
    """
    cloud = config.cloud
    assert cloud is not None
    resources = cloud.of_node(TRAINER)
    workers = resources.workers or 1
    pools = [_pool(resources, image, 1)]
    if workers > 1:
        pools.append(_pool(resources, image, workers - 1))
    job_spec: dict[str, Any] = {"worker_pool_specs": pools}
    if cloud.service_account:
        job_spec["service_account"] = cloud.service_account
    if cloud.network:
        job_spec["network"] = cloud.network
    labels = {**cloud.labels, "sluice-pipeline": config.name}
    if resources.tpu is not None:
        labels["tpu-runtime"] = resources.tpu.runtime_version.replace(".", "-")
    return {
        "ai_platform_enable_vertex": True,
        "ai_platform_vertex_region": cloud.region,
        "ai_platform_training_args": {
            "project": cloud.project,
            "display_name": f"{config.name}-trainer",
            "labels": labels,
            "job_spec": job_spec,
        },
    }


def _pool(resources: NodeResources, image: str, machines: int) -> dict[str, Any]:
    machine: dict[str, Any] = {"machine_type": resources.machine_type}
    if resources.accelerator is not None:
        machine["accelerator_type"] = resources.accelerator.type
        machine["accelerator_count"] = resources.accelerator.count
    if resources.tpu is not None:
        machine["tpu_topology"] = resources.tpu.topology
    env = [
        {"name": name, "value": value} for name, value in environment(resources).items()
    ]
    return {
        "machine_spec": machine,
        "replica_count": machines,
        "container_spec": {"image_uri": image, "env": env},
    }


def environment(resources: NodeResources) -> dict[str, str]:
    """Returns the environment of a node's container.

    TensorFlow must find the Keras that the project is written for, whatever the image
    says (see ``sluice.compat``). A TPU of Vertex AI is that of the machine itself.
    """
    tpu = {"TPU_NAME": LOCAL_TPU} if resources.tpu else {}
    return {"TF_USE_LEGACY_KERAS": "1", **tpu, **resources.env}
