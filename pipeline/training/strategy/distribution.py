"""The distribution strategy of a training, with its batch size and devices."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NoReturn

import tensorflow as tf

from pipeline.config.batch_size import TPU_MULTIPLE, batch_note, global_batch_size
from pipeline.training.strategy import tpu as tpu_strategy
from pipeline.training.strategy.choice import Cluster, choose, find_tpu, read_cluster
from pipeline.training.strategy.devices import DeviceSettings, configure_devices
from pipeline.training.strategy.task_process import beat, is_supervised


@dataclass(frozen=True)
class StrategySettings:
    """Settings of ``choose_distribution``; see the keys of ``train`` in the config.

    A TPU on another machine takes no local paths of what is read and written.
    """

    strategy: str = "auto"
    batch_size: int | None = None
    batch_per_replica: int | None = None
    steps_per_execution: int | None = None
    replicas: int | None = None
    processes: int | None = None
    devices: DeviceSettings = field(default_factory=DeviceSettings)
    paths: Sequence[str] = ()

    @classmethod
    def from_config(
        cls, train: Mapping[str, Any], paths: Sequence[str] = ()
    ) -> StrategySettings:
        """Reads the section ``train`` of the config."""
        own = {item.name for item in fields(cls)} - {"devices", "paths"}
        given = {name: train[name] for name in own}
        return cls(**given, devices=DeviceSettings(**train["devices"]), paths=paths)


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
      is_chief: whether this process exports, checkpoints and writes logs.
      asynchronous_workers: number of workers of parameter servers, each of which reads
        all data.
      static_shapes: whether all batches must have the same shape.
    """

    strategy: tf.distribute.Strategy
    kind: str
    line: str
    batch_size: int
    steps_per_execution: int = 1
    workers: int = 1
    worker: int = 0
    is_chief: bool = True
    asynchronous_workers: int = 0
    static_shapes: bool = False

    @property
    def replicas(self) -> int:
        """Number of replicas, those of other workers included."""
        return self.strategy.num_replicas_in_sync

    @property
    def batch_per_replica(self) -> int:
        """Examples per step and replica."""
        return self.batch_size // self.replicas


def choose_distribution(settings: StrategySettings) -> Distribution:
    """Configures the devices and returns the distribution to train with.

    Must be called before TensorFlow uses a device.

    Raises:
      UsageError: the strategy asked for is not there, or a TPU on another machine is
        given local paths.
      NodeError: the devices asked for are not there, or the batch cannot be divided
        over the replicas.
    """
    physical = configure_devices(settings.devices, settings.replicas)
    tpu, cluster = find_tpu(), read_cluster()
    choice = choose(
        settings.strategy,
        gpus=len(physical) if physical[0].device_type == "GPU" else 0,
        tpu=tpu,
        cluster=cluster,
        replicas=settings.replicas,
        processes=settings.processes if is_supervised() else None,
    )
    kind = choice.kind
    if kind == "tpu":
        assert tpu is not None
        strategy = tpu_strategy.connect(tpu, settings.paths)
        place = f"the TPU {tpu.name!r}" if tpu.name != "local" else "the local TPU"
    elif kind in ("multi_worker", "parameter_server"):
        assert cluster is not None
        strategy, place = _over_workers(kind, cluster)
    else:
        strategy, place = _on_this_machine(kind, physical)
    replicas = strategy.num_replicas_in_sync
    batch_size = global_batch_size(
        settings.batch_size,
        settings.batch_per_replica,
        replicas,
        multiple=TPU_MULTIPLE if kind == "tpu" else 1,
    )
    plural = "replica" if replicas == 1 else "replicas"
    line = f"{kind}: {replicas} {plural} on {place}, {choice.why}"
    if kind == "tpu" and (note := batch_note(batch_size // replicas)):
        line += f"; {note}"
    default_steps = tpu_strategy.STEPS_PER_EXECUTION if kind == "tpu" else 1
    sharing = cluster if kind == "multi_worker" else None
    serving = cluster if kind == "parameter_server" else None
    return Distribution(
        strategy=strategy,
        kind=kind,
        line=line,
        batch_size=batch_size,
        steps_per_execution=settings.steps_per_execution or default_steps,
        workers=sharing.workers if sharing else 1,
        worker=sharing.worker if sharing else 0,
        is_chief=sharing.is_chief if sharing else True,
        asynchronous_workers=serving.workers if serving else 0,
        static_shapes=kind == "tpu",
    )


def is_server() -> bool:
    """Whether ``TF_CONFIG`` makes this process serve the coordinator of a training."""
    cluster = read_cluster()
    return bool(cluster and cluster.parameter_servers and not cluster.is_chief)


def serve() -> NoReturn:
    """Does what the coordinator asks for, until the process is ended."""
    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if cluster.task_type == "ps":
        tf.config.set_visible_devices([], "GPU")
    # Else a request to a process that is gone would wait for it.
    os.environ["GRPC_FAIL_FAST"] = "use_caller"
    server = tf.distribute.Server(
        cluster.cluster_spec(),
        job_name=cluster.task_type,
        task_index=cluster.task_id,
        protocol="grpc",
    )
    print(f"serving at {server.target}", flush=True)
    while True:
        beat()
        time.sleep(1)


def _handle_sigterm_again() -> None:
    """Reinstalls Python's handler: the coordination service has one of its own."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))


def _over_workers(kind: str, cluster: Cluster) -> tuple[tf.distribute.Strategy, str]:
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if kind == "multi_worker":
        strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver)
        _handle_sigterm_again()
        return strategy, f"{cluster.workers} workers"
    partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(
        max_shards=cluster.parameter_servers
    )
    strategy = tf.distribute.ParameterServerStrategy(resolver, partitioner)
    servers = f"parameter servers: {cluster.parameter_servers}"
    return strategy, f"each of {cluster.workers} workers ({servers})"


def _on_this_machine(
    kind: str, physical: Sequence[Any]
) -> tuple[tf.distribute.Strategy, str]:
    type_ = physical[0].device_type
    logical = [device.name for device in tf.config.list_logical_devices(type_)]
    if kind == "one_device":
        # A strategy of one replica only adds overhead.
        return tf.distribute.get_strategy(), f"the {type_}"
    if len(logical) > len(physical):
        place = f"{len(logical)} logical devices of the {type_}"
    else:
        place = f"{len(logical)} {type_}s" if len(logical) > 1 else f"the {type_}"
    if kind == "mirrored":
        return tf.distribute.MirroredStrategy(logical), place
    strategy = tf.distribute.experimental.CentralStorageStrategy(logical, "CPU:0")
    return strategy, place
