"""Processes of a training: ``train.processes``, or this machine's task of a cluster.

Each is a task of the cluster that its ``TF_CONFIG`` describes, forked so that
TensorFlow's import is done. Tasks wait for a missing one without end, and TensorFlow
ignores SIGTERM meanwhile: when one dies, or has not started in time, all are killed.
``sluice resume`` continues from the last checkpoint.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import wait
from typing import Any

import tensorflow as tf

from pipeline.config.train import Train
from pipeline.training.strategy.choice import (
    TF_CONFIG,
    choose,
    find_tpu,
    read_cluster,
)
from pipeline.training.strategy.cluster import Cluster, find_cluster
from pipeline.training.strategy.distribution import Distribution, choose_distribution
from pipeline.training.strategy.rendezvous import NO_PEERS, Peers, meet
from sluice.errors import NodeError, SluiceError
from sluice.node_environment import node_environment, tell
from sluice.process_tree import describe_end, die_with, name_process

# In which all tasks must have joined the cluster.
START_S = 300.0
_POLL_S = 0.2
# TensorFlow's exceptions in a task that has lost another, or it aborts the process.
_OF_LOST_PEERS = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
    tf.errors.UnavailableError,
)
# For so long it may be that another machine is to name as lost. One that has aborted
# says so first.
_ABORTED_S, _UNAVAILABLE_S = 2.0, 10.0
# Joins the cluster, calls the function that it is given, and trains or serves.
Task = Callable[[Callable[[], object]], None]


def distribute(train: Train, fit: Callable[[Distribution], None]) -> None:
    """Calls ``fit`` in each process that trains, with the distribution there.

    Raises:
      NodeError: a process was lost, or has failed.
      SluiceError: as ``choose_distribution`` or ``fit`` has raised it.
    """

    def task(started: Callable[[], object]) -> None:
        if train.deterministic:
            tf.config.experimental.enable_op_determinism()
        cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        job = cluster.task_type
        if "ps" in cluster.cluster_spec().jobs and job != "chief":
            # Else a request to a process that is gone would wait for it.
            os.environ["GRPC_FAIL_FAST"] = "use_caller"
            server = tf.distribute.Server(
                cluster.cluster_spec(), job, cluster.task_id, protocol="grpc"
            )
            started()
            server.join()
        distribution = choose_distribution(train)
        started()
        fit(distribution)

    if cluster := cluster_of_run(train):
        with meet(cluster) as peers:
            _run_processes(
                task, cluster.addresses, [(cluster.job, cluster.index)], peers
            )
    elif train.processes is None or os.environ.get(TF_CONFIG):
        task(lambda: None)
    else:
        run_tasks(task, train.processes, train.parameter_servers or 0)


def cluster_of_run(train: Train) -> Cluster | None:
    """Returns the cluster of machines that train a run; None without one.

    A cloud service starts and ends the tasks of its clusters itself.
    """
    cluster = find_cluster() if node_environment().training_file else None
    if cluster is None:
        return None
    kind, _ = choose(
        train.strategy,
        gpus=0,
        tpu=find_tpu(),
        cluster=read_cluster(),
        replicas=train.replicas,
    )
    return cluster if kind in ("multi_worker", "parameter_server") else None


def run_tasks(task: Task, workers: int, parameter_servers: int = 0) -> None:
    """Runs the tasks of a cluster in processes until the training has ended.

    With parameter servers it ends in a further task, the coordinator; else in all.

    Raises:
      NodeError: a process has died, failed or not started in time.
      SluiceError: as a task has raised it.
    """
    jobs = {"worker": workers}
    if parameter_servers:
        jobs = {"chief": 1, "worker": workers, "ps": parameter_servers}
    tasks = [(job, index) for job, count in jobs.items() for index in range(count)]
    _run_processes(task, _free_addresses(tasks), tasks)


def _run_processes(
    task: Task,
    addresses: Mapping[str, Sequence[str]],
    tasks: Sequence[tuple[str, int]],
    peers: Peers = NO_PEERS,
) -> None:
    """Runs tasks of a cluster; those of other machines are ``peers``."""
    context = multiprocessing.get_context("fork")
    messages: Any = context.SimpleQueue()

    def run(job: str, index: int, parent: int) -> None:
        die_with(parent)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        name_process(f"sluice:{job} {index}")
        cluster = Cluster(addresses, job, index)
        os.environ[TF_CONFIG] = cluster.to_json()
        if not cluster.is_chief:
            tell(progress_file=None)
        try:
            task(lambda: messages.put("started"))
            messages.put("done")
        except Exception as error:
            traceback.print_exc()
            text = f"{job} {index} failed: {type(error).__name__}: {error}"
            is_ours = isinstance(error, SluiceError)
            explained = error if is_ours else NodeError(text.partition("\n")[0])
            messages.put((explained, isinstance(error, _OF_LOST_PEERS)))
        sys.stdout.flush()
        while True:  # Until all are killed: others may still need this one's server.
            signal.pause()

    deadline = time.monotonic() + START_S
    processes = [
        context.Process(target=run, args=(job, i, os.getpid()), name=f"{job} {i}")
        for job, i in tasks
    ]
    counts: Counter[str] = Counter()
    # Servers have no end: the chief ends them.
    has_servers = "ps" in addresses
    awaited = int(tasks[0] == ("chief", 0)) if has_servers else len(tasks)
    try:
        for process in processes:
            process.start()
        while counts["done"] < awaited or not peers.have_ended:
            ends = [process.sentinel for process in processes]
            wait([*ends, *peers.connections], _POLL_S)
            peers.check()
            for process in processes:
                if process.exitcode is not None:
                    if process.exitcode == -signal.SIGABRT:
                        peers.check(_ABORTED_S)
                    raise NodeError(f"{process.name} {describe_end(process.exitcode)}")
            while not messages.empty():
                message = messages.get()
                if isinstance(message, tuple):
                    error, may_be_peers = message
                    if may_be_peers:
                        peers.check(_UNAVAILABLE_S)
                    raise error
                counts[message] += 1
            if counts["started"] < len(processes) and time.monotonic() > deadline:
                listed = ", ".join(item for job in addresses.values() for item in job)
                text = f"not all processes have started in {START_S:.0f} s"
                raise NodeError(text, where=listed)
        peers.say_done()
    finally:
        for process in processes:
            if process.pid:
                process.kill()
                process.join()


def _free_addresses(tasks: Sequence[tuple[str, int]]) -> dict[str, list[str]]:
    """Returns addresses of this machine by job, one for each of its tasks."""
    # All are open at once: no port comes twice.
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in tasks]
    addresses: dict[str, list[str]] = {}
    for (job, _), probe in zip(tasks, probes, strict=True):
        address = f"127.0.0.1:{probe.getsockname()[1]}"
        addresses.setdefault(job, []).append(address)
        probe.close()
    return addresses
