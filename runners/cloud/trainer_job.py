"""Custom jobs on Vertex AI of the Trainer and of Tuners: worker pools and TPUs.

A container task has CPUs, memory and GPUs, but no machine type, no TPU topology and no
second machine. With one of these the node's task runs TFX's executor for Vertex AI,
which starts a custom job with the same arguments, and waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeline.config.cloud import NodeResources
from pipeline.config.config import Config
from pipeline.training.strategy.choice import LOCAL_TPU

TRAINER = "Trainer"
NODE_LABEL = "sluice-node"


@dataclass(frozen=True)
class JobKind:
    """How TFX runs a kind of node as a custom job.

    Attributes:
      executor: starts the job, see ``runners.vertex.custom_job``.
      in_worker: the executor that TFX runs in it.
      arguments: key of ``custom_config`` that describes the job.
    """

    executor: str
    in_worker: str
    arguments: str


TRAINING = JobKind(
    "runners.vertex.custom_job.TrainerJob",
    "tfx.components.trainer.executor.GenericExecutor",
    "ai_platform_training_args",
)
TUNING = JobKind(
    "runners.vertex.custom_job.TunerJob",
    "tfx.components.tuner.executor.Executor",
    "ai_platform_tuning_args",
)


def job_kinds(config: Config) -> dict[str, JobKind]:
    """Returns the nodes that can be custom jobs: the Trainer and custom Tuners."""
    tuners = [
        name
        for name, own in config.nodes.items()
        if own.component.rpartition(":")[2] == "Tuner"
    ]
    return {TRAINER: TRAINING, **dict.fromkeys(tuners, TUNING)}


def needs_custom_job(resources: NodeResources) -> bool:
    """Whether a container task cannot have these resources."""
    return bool(resources.machine_type or resources.tpu or (resources.workers or 1) > 1)


def job_arguments(config: Config, node: str, image: str) -> dict[str, Any]:
    """Returns what the executor needs, as keys of the node's ``custom_config``.

    Args:
      config: see ``check_cloud``.
      node: one of ``job_kinds``.
      image: the node's.
    """
    cloud = config.cloud
    assert cloud is not None
    given = cloud.of_node(node)
    workers = given.workers or 1
    pools = [_pool(given, image, 1)]
    if workers > 1:
        pools.append(_pool(given, image, workers - 1))
    job_spec: dict[str, Any] = {"worker_pool_specs": pools}
    if cloud.service_account:
        job_spec["service_account"] = cloud.service_account
    if cloud.network:
        job_spec["network"] = cloud.network
    labels = {**cloud.labels, "sluice-pipeline": config.name, NODE_LABEL: node.lower()}
    if given.tpu is not None:
        labels["tpu-runtime"] = given.tpu.runtime_version.replace(".", "-")
    return {
        "ai_platform_enable_vertex": True,
        "ai_platform_vertex_region": cloud.region,
        job_kinds(config)[node].arguments: {
            "project": cloud.project,
            "display_name": f"{config.name}-{node.lower()}",
            "labels": labels,
            "job_spec": job_spec,
        },
    }


def _pool(given: NodeResources, image: str, machines: int) -> dict[str, Any]:
    machine: dict[str, Any] = {"machine_type": given.machine_type}
    if given.accelerator is not None:
        machine["accelerator_type"] = given.accelerator.type
        machine["accelerator_count"] = given.accelerator.count
    if given.tpu is not None:
        machine["tpu_topology"] = given.tpu.topology
    env = [{"name": name, "value": value} for name, value in environment(given).items()]
    return {
        "machine_spec": machine,
        "replica_count": machines,
        "container_spec": {"image_uri": image, "env": env},
    }


def environment(given: NodeResources) -> dict[str, str]:
    """Returns the environment of a node's container.

    TensorFlow must find the Keras that the project is written for, whatever the image
    says (see ``sluice.compat``). A TPU of Vertex AI is that of the machine itself.
    """
    tpu = {"TPU_NAME": LOCAL_TPU} if given.tpu else {}
    return {"TF_USE_LEGACY_KERAS": "1", **tpu, **given.env}
