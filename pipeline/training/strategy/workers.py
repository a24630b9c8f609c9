"""Workers as processes of this machine: ``train.processes`` of the config.

Each is a task of the cluster that its ``TF_CONFIG`` describes, forked so that
TensorFlow's import is done. Tasks wait for a missing one without end, and TensorFlow
ignores SIGTERM meanwhile: when one dies, or has not started in time, all are killed.
``sluice resume`` continues from the last checkpoint.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from typing import Any

import tensorflow as tf

from pipeline.config.train import Train
from pipeline.training.strategy.choice import TF_CONFIG
from pipeline.training.strategy.distribution import Distribution, choose_distribution
from sluice.errors import NodeError, SluiceError
from sluice.node_environment import tell
from sluice.process_tree import describe_end, die_with, name_process

# In which all tasks must have joined the cluster.
START_S = 300.0
_POLL_S = 0.2
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

    if train.processes is None or os.environ.get(TF_CONFIG):
        task(lambda: None)
    else:
        run_tasks(task, train.processes, train.parameter_servers or 0)


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
    cluster = _free_addresses(tasks)
    context = multiprocessing.get_context("fork")
    messages: Any = context.SimpleQueue()

    def run(job: str, index: int, parent: int) -> None:
        die_with(parent)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        name_process(f"sluice:{job} {index}")
        place = {"cluster": cluster, "task": {"type": job, "index": index}}
        os.environ[TF_CONFIG] = json.dumps(place)
        if index > 0:
            tell(progress_file=None)
        try:
            task(lambda: messages.put("started"))
            messages.put("done")
        except Exception as error:
            traceback.print_exc()
            text = f"{job} {index} failed: {type(error).__name__}: {error}"
            is_ours = isinstance(error, SluiceError)
            messages.put(error if is_ours else NodeError(text.partition("\n")[0]))
        sys.stdout.flush()
        while True:  # Until all are killed: others may still need this one's server.
            signal.pause()

    deadline = time.monotonic() + START_S
    processes = [
        context.Process(target=run, args=(job, i, os.getpid()), name=f"{job} {i}")
        for job, i in tasks
    ]
    counts: Counter[str] = Counter()
    try:
        for process in processes:
            process.start()
        while counts["done"] < jobs.get("chief", workers):
            wait([process.sentinel for process in processes], _POLL_S)
            for process in processes:
                if process.exitcode is not None:
                    raise NodeError(f"{process.name} {describe_end(process.exitcode)}")
            while not messages.empty():
                message = messages.get()
                if isinstance(message, SluiceError):
                    raise message
                counts[message] += 1
            if counts["started"] < len(processes) and time.monotonic() > deadline:
                raise NodeError(f"not all processes have started in {START_S:.0f} s")
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
