"""The processes of parameter servers and of their workers: servers of TensorFlow."""

from __future__ import annotations

import os
import time
from typing import NoReturn

import tensorflow as tf

from pipeline.training.strategy.choice import read_cluster
from pipeline.training.strategy.task_process import beat


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
