"""The Trainer's custom job on Vertex AI: worker pools and TPUs.

A container task has CPUs, memory and GPUs, but no machine type, no TPU topology and no
second machine. With one of these the Trainer's task runs TFX's executor for Vertex AI,
which starts a custom job with the same arguments, and waits for it.
"""

from __future__ import annotations

from typing import Any

from pipeline.config.cloud import Cloud, NodeResources
from pipeline.config.config import Config
from pipeline.config.origin import KeyPath
from pipeline.training.strategy.choice import LOCAL_TPU
from sluice.errors import ConfigError

TRAINER = "Trainer"
EXECUTOR = "tfx.extensions.google_cloud_ai_platform.trainer.executor.GenericExecutor"
_PATH: KeyPath = ("cloud", "nodes", TRAINER)


def needs_custom_job(resources: NodeResources) -> bool:
    """Whether a container task cannot have these resources."""
    return bool(resources.machine_type or resources.tpu or (resources.workers or 1) > 1)


def check_trainer(config: Config) -> None:
    """Raises a ``ConfigError`` for resources that the engine cannot give a node."""
    cloud = config.cloud
    assert cloud is not None
    for node in cloud.nodes:
        if node != TRAINER and needs_custom_job(cloud.of_node(node)):
            raise ConfigError(
                "only the Trainer has machine_type, workers and tpu",
                where=_at(config, ("cloud", "nodes", node)),
                expected="cpu, memory_gb and accelerator",
                hint=f"move them to cloud.nodes.{TRAINER}",
            )
    given = cloud.of_node(TRAINER)
    if not needs_custom_job(given):
        return
    if cloud.engine == "kubeflow":
        raise ConfigError(
            "Kubeflow Pipelines runs each node in one pod",
            where=_at(config, _PATH),
            expected="cpu, memory_gb and accelerator",
            actual="machine_type, workers or tpu",
            hint="train.processes trains in several processes of the pod",
        )
    missing = [key for key in ("project", "region") if not getattr(cloud, key)]
    keys = [f"cloud.{key}" for key in missing]
    keys += [] if given.machine_type else [f"cloud.nodes.{TRAINER}.machine_type"]
    if keys:
        raise ConfigError(
            "the Trainer's custom job is not complete",
            where=_at(config, _PATH),
            expected=", ".join(keys),
            hint=f"--set {keys[0]}=...",
        )


def _at(config: Config, path: KeyPath) -> str:
    return f"{config.origin.location(path)}, {'.'.join(map(str, path))}"


def job_arguments(cloud: Cloud, pipeline: str, image: str) -> dict[str, Any]:
    """Returns what the executor needs, as keys of the Trainer's ``custom_config``.

    Args:
      cloud: checked by ``check_trainer``.
      pipeline: its name.
      image: the Trainer's.
    """
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
    labels = {**cloud.labels, "sluice-pipeline": pipeline}
    if given.tpu is not None:
        labels["tpu-runtime"] = given.tpu.runtime_version.replace(".", "-")
    return {
        "ai_platform_training_enable_vertex": True,
        "ai_platform_vertex_region": cloud.region,
        "ai_platform_training_args": {
            "project": cloud.project,
            "display_name": f"{pipeline}-trainer",
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
