"""Which examples the workers of parameter servers read, in a cluster in one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.project import own_root

pytestmark = pytest.mark.tf

READ = """
import json, socket, sys, threading
from sluice.compat import prepare_environment
prepare_environment()
import tensorflow as tf
from pipeline.training.input.training_input import make_input
from pipeline.training.strategy.distribution import Distribution
from tests.kit.trainings import feature_set, files_in, settings
from tests.kit.transform_output import Output

WORKERS = 2
servers = []

def cluster():
    # All are open at once, so that no port is given twice.
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(WORKERS + 1)]
    names = [f"127.0.0.1:{probe.getsockname()[1]}" for probe in probes]
    for probe in probes:
        probe.close()
    jobs = {"worker": names[1:], "ps": names[:1]}
    spec = tf.train.ClusterSpec(jobs)
    # Servers in one process share its threads, and wait for each other in them.
    config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=8)
    servers.extend(
        tf.distribute.Server(spec, job, index, protocol="grpc", config=config)
        for job, tasks in jobs.items()
        for index in range(len(tasks))
    )
    return tf.distribute.cluster_resolver.SimpleClusterResolver(spec, rpc_layer="grpc")

strategy = tf.distribute.ParameterServerStrategy(cluster())
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
training_input = make_input(
    settings(seed=3),
    files_in(sys.argv[1]),
    feature_set({"a": "numeric"}, (0, 1, 2)),
    Output(),
    Distribution(
        strategy=strategy,
        kind="parameter_server",
        line="",
        batch_size=5,
        asynchronous_workers=WORKERS,
    ),
)
barrier = threading.Barrier(WORKERS, timeout=60)

def wait():
    barrier.wait()
    return 0

@tf.function
def step(iterator):
    a = next(iterator)[0]["a_xf"]
    # So that each worker takes every second step.
    with tf.control_dependencies([tf.numpy_function(wait, [], tf.int64)]):
        return tf.identity(a)

def read(creator, steps):
    @tf.function
    def distributed():
        return strategy.distribute_datasets_from_function(creator.dataset_fn)

    iterator = iter(coordinator.create_per_worker_dataset(distributed))
    results = [coordinator.schedule(step, args=(iterator,)) for _ in range(steps)]
    coordinator.join()
    return [result.fetch().ravel().tolist() for result in results]

steps = training_input.steps_per_epoch
print(json.dumps({
    "eval": read(training_input.eval(), training_input.eval_steps),
    "train": read(training_input.train(), steps - steps % WORKERS),
}))
"""


@pytest.fixture(scope="module")
def batches(numbers: Path) -> dict[str, list[list[float]]]:
    """Numbers of the examples in each batch of an epoch, by split."""
    command = [sys.executable, "-c", READ, str(numbers)]
    environment = {**os.environ, "PYTHONPATH": str(own_root())}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_workers_validate_on_different_examples(batches):
    seen = sorted(number for batch in batches["eval"] for number in batch)
    assert seen == [float(number) for number in range(20)]


def test_each_worker_trains_in_an_order_of_its_own(batches):
    different = {frozenset(batch) for batch in batches["train"]}
    assert len(different) == len(batches["train"])
