"""The Trainer's custom job on Vertex AI: worker pools and TPUs.

A container task has CPUs, memory and GPUs, but no machine type, no TPU topology and no
second machine. With one of these the Trainer's task runs TFX's executor for Vertex AI,
which starts a custom job with the same arguments, and waits for it.
"""

from __future__ import annotations

from typing import Any

from pipeline.config.cloud import NodeResources
from pipeline.config.config import Config
from pipeline.training.strategy.choice import LOCAL_TPU

TRAINER = "Trainer"
# The executor that starts the job, and the one that TFX runs in it.
EXECUTOR = "runners.cloud.custom_job.TrainerJob"
IN_WORKER = "tfx.components.trainer.executor.GenericExecutor"


def needs_custom_job(resources: NodeResources) -> bool:
    """Whether a container task cannot have these resources."""
    return bool(resources.machine_type or resources.tpu or (resources.workers or 1) > 1)


def job_arguments(config: Config, image: str) -> dict[str, Any]:
    """Returns what the executor needs, as keys of the Trainer's ``custom_config``.

    Args:
      config: see ``check_cloud``.
      image: the Trainer's.
    """
    cloud = config.cloud
    assert cloud is not None
    given = cloud.of_node(TRAINER)
    workers = given.workers or 1
    pools = [_pool(given, image, 1)]
    if workers > 1:
        pools.append(_pool(given, image, workers - 1))
    job_spec: dict[str, Any] = {"worker_pool_specs": pools}
    if cloud.service_account:
        job_spec["service_account"] = cloud.service_account
    if cloud.network:
        job_spec["network"] = cloud.network
    labels = {**cloud.labels, "sluice-pipeline": config.name}
    if given.tpu is not None:
        labels["tpu-runtime"] = given.tpu.runtime_version.replace(".", "-")
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
