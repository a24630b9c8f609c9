"""What the workers of parameter servers read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sluice.project import own_root
from sluice.tfrecords import tfrecord
from tests.kit.analysis import analyze, serialize
from tests.kit.trainings import feature_set

pytestmark = pytest.mark.tf

# Which examples, in a cluster in one process.
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

# With workers in processes, whose vocabularies must not be in this one.
TRAIN = """
import sys
from sluice.compat import prepare_environment
prepare_environment()
from pipeline.config.features import FeatureSet
from pipeline.training import run_fn as training
from tests.kit.trainings import fn_args

folder, features = sys.argv[1:]
training.export_model = lambda *a, **k: None
cluster = {"strategy": "parameter_server", "processes": 2, "parameter_servers": 1}
given = fn_args(
    {"epochs": 8, "batch_size": 8, "learning_rate": 0.05, **cluster},
    FeatureSet.model_validate_json(features),
    "pipeline.training.models.dense:build_model",
    folder,
    folder,
)
given.transform_graph_path = folder + "/out"
training.run_fn(given)
print(open(folder + "/run/history.json").read().replace("\\n", ""))
"""


def _output_of(script: str, *arguments: str) -> Any:
    command = [sys.executable, "-c", script, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(own_root())}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def batches(numbers: Path) -> dict[str, list[list[float]]]:
    """Numbers of the examples in each batch of an epoch, by split."""
    return _output_of(READ, str(numbers))


def test_workers_validate_on_different_examples(batches):
    seen = sorted(number for batch in batches["eval"] for number in batch)
    assert seen == [float(number) for number in range(20)]


def test_each_worker_trains_in_an_order_of_its_own(batches):
    different = {frozenset(batch) for batch in batches["train"]}
    assert len(different) == len(batches["train"])


def test_workers_in_processes_have_the_vocabularies(tmp_path):
    """Workers that look words up in the coordinator wait for it, and it for them."""
    import tensorflow as tf

    features = feature_set({"word": {"kind": "vocabulary", "oov_buckets": 1}})
    spec = {
        "word": tf.io.VarLenFeature(tf.string),
        "y": tf.io.FixedLenFeature([1], tf.int64),
    }
    rows = [{"word": [b"%d" % (i % 4)], "y": [i % 2]} for i in range(48)]
    analyze(rows, spec, features, tmp_path)
    for split in ("train", "eval"):
        tfrecord.write(tmp_path / f"{split}.gz", serialize(rows))
    history = _output_of(TRAIN, str(tmp_path), features.model_dump_json(warnings=False))
    assert history["val_binary_accuracy"][-1] == 1
