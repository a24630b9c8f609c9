"""The distribution strategy of a training, with its batch size and devices.

Strategies are those of tf.distribute's guide. For one device there is none: it would
only add overhead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from pipeline.config.train import TPU_MULTIPLE, Devices, Train
from pipeline.training.strategy.choice import (
    LOCAL_TPU,
    choose,
    find_tpu,
    read_cluster,
)
from sluice.errors import NodeError

TPU_STEPS_PER_EXECUTION = 50


@dataclass(frozen=True)
class Distribution:
    """How a training is distributed.

    Attributes:
      strategy: in whose scope the model is built and compiled.
      kind: one_device, mirrored, multi_worker, tpu, parameter_server or
        central_storage.
      line: which kind, on how many replicas of what, and why.
      batch_size: examples per step over all replicas.
      steps_per_execution: steps that the device runs at a time.
      workers: number of input pipelines that share the data.
      worker: number of this process among them.
      asynchronous_workers: number of workers of parameter servers, each of which reads
        all data.
    """

    strategy: tf.distribute.Strategy
    kind: str
    line: str
    batch_size: int
    steps_per_execution: int = 1
    workers: int = 1
    worker: int = 0
    asynchronous_workers: int = 0

    @property
    def replicas(self) -> int:
        """Number of replicas, those of other workers included."""
        return self.strategy.num_replicas_in_sync

    @property
    def full_batches(self) -> bool:
        """Whether each replica takes full batches of its own from its worker's data."""
        return self.kind in ("multi_worker", "tpu")

    def leaves_a_replica_idle(self, count: int) -> bool:
        """Whether a batch of so many examples has some for a part of the replicas only.

        Keras 3's statistics of batch normalization would be NaN.
        """
        if self.asynchronous_workers or not count:
            return False
        return math.ceil(count / self.replicas) * (self.replicas - 1) >= count

    @property
    def is_chief(self) -> bool:
        """Whether this process exports the model, and writes checkpoints and logs."""
        return self.worker == 0

    def with_batch_of(self, train: Train) -> Distribution:
        """Returns it for a training with another batch size, or steps per execution.

        Raises:
          NodeError: the batch cannot be divided over the replicas.
        """
        multiple = TPU_MULTIPLE if self.kind == "tpu" else 1
        size = train.global_batch_size(self.replicas, multiple)
        steps = train.steps_per_execution or self.steps_per_execution
        return replace(self, batch_size=size, steps_per_execution=steps)


def choose_distribution(train: Train) -> Distribution:
    """Configures the devices and returns the distribution to train with.

    Must be called before TensorFlow uses a device.

    Raises:
      UsageError: the strategy asked for is not there.
      NodeError: the devices asked for are not there, or the batch cannot be divided
        over the replicas.
    """
    physical = _configure_devices(train.devices, train.replicas)
    device = physical[0].device_type
    tpu, cluster = find_tpu(), read_cluster()
    kind, why = choose(
        train.strategy,
        gpus=len(physical) if device == "GPU" else 0,
        tpu=tpu,
        cluster=cluster,
        replicas=train.replicas,
    )
    strategy = _make_strategy(kind, device, tpu[0] if tpu else "")
    replicas, is_tpu = strategy.num_replicas_in_sync, kind == "tpu"
    size = train.global_batch_size(replicas, TPU_MULTIPLE if is_tpu else 1)
    place = f"{replicas} {device}s" if replicas > 1 else f"the {device}"
    workers, worker, served = 1, 0, 0
    if kind == "multi_worker":
        chiefs, task = cluster.get("chief", 0), strategy.cluster_resolver
        workers = chiefs + cluster.get("worker", 0)
        worker = task.task_id + (chiefs if task.task_type == "worker" else 0)
        place = f"{workers} workers"
    elif kind == "parameter_server":
        served = cluster["worker"]
        place = f"each of {served} workers"
    elif is_tpu:
        place = "the TPU"
    line = f"{kind}: {replicas} replica{'s' * (replicas > 1)} on {place}, {why}"
    default_steps = TPU_STEPS_PER_EXECUTION if is_tpu else 1
    steps = train.steps_per_execution or default_steps
    return Distribution(strategy, kind, line, size, steps, workers, worker, served)


def _make_strategy(kind: str, device: str, tpu: str) -> tf.distribute.Strategy:
    if kind == "tpu":
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu)
        if tpu != LOCAL_TPU:
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    if kind == "one_device":
        return tf.distribute.get_strategy()
    if kind in ("multi_worker", "parameter_server"):
        # It must join its cluster before TensorFlow lists the logical devices.
        cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        if kind == "multi_worker":
            return tf.distribute.MultiWorkerMirroredStrategy(cluster)
        return tf.distribute.ParameterServerStrategy(cluster)
    devices = [item.name for item in tf.config.list_logical_devices(device)]
    if kind == "mirrored":
        return tf.distribute.MirroredStrategy(devices)
    return tf.distribute.experimental.CentralStorageStrategy(devices, "CPU:0")


def _configure_devices(settings: Devices, replicas: int | None = None) -> list[Any]:
    """Configures this machine's devices, and returns the physical ones to train on.

    These are the visible GPUs, else the CPU. With ``replicas`` the first of them is
    divided into so many logical devices, and the others are left out.

    Raises:
      NodeError: there is no GPU of a number.
      RuntimeError: TensorFlow has used the devices already.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if missing := {*(settings.visible or ())} - {*range(len(gpus))}:
        what = f"there is no GPU {min(missing)}: this machine has {len(gpus)}"
        raise NodeError(what, where="train.devices.visible")
    if settings.visible is not None:
        gpus = [gpus[number] for number in settings.visible]
    if replicas is not None:
        gpus = gpus[:1]
    if settings.visible is not None or replicas is not None:
        tf.config.set_visible_devices(gpus, "GPU")
    for gpu in gpus if settings.memory_growth else []:
        tf.config.experimental.set_memory_growth(gpu, True)
    devices = gpus or tf.config.list_physical_devices("CPU")
    for device in devices:
        limit_mb = settings.memory_limit_mb if gpus else None
        if replicas or limit_mb:
            part = tf.config.LogicalDeviceConfiguration(limit_mb)
            parts = [part] * (replicas or 1)
            tf.config.set_logical_device_configuration(device, parts)
    return devices
