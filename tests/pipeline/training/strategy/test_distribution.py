"""Training in every distribution of one process, on logical CPUs."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from pipeline.config.train import Train
from sluice.errors import SluiceError
from sluice.patches.tensorflow import exclude_keras_from_autograph
from tests.kit.forked_command import call_as_node

pytestmark = pytest.mark.tf

BATCH, STEPS, EPOCHS = 32, 6, 3
CASES = {
    "one_device": {},
    "mirrored": {"replicas": 4},
    "bfloat16": {"replicas": 2, "precision": "mixed_bfloat16"},
    "float16": {
        "replicas": 4,
        "precision": "mixed_float16",
        "steps_per_execution": 4,
    },
    "central_storage": {"strategy": "central_storage", "replicas": 2},
    "no GPU": {"devices": {"visible": [99]}},
}


def train(given, result):
    """Trains a small model, and writes the losses and how they were computed."""
    import tensorflow as tf

    from pipeline.training.strategy.distribution import choose_distribution

    exclude_keras_from_autograph()
    train = Train.model_validate({"batch_size": BATCH, **given})
    try:
        distribution = choose_distribution(train)
    except SluiceError as error:
        Path(result).write_text(json.dumps(str(error)))
        return
    tf.keras.mixed_precision.set_global_policy(train.precision)
    values = tf.random.stateless_normal([BATCH * STEPS, 4], seed=[1, 2])
    labels = tf.argmax(values[:, :3], axis=1)
    data = tf.data.Dataset.from_tensor_slices((values, labels))
    tf.keras.utils.set_random_seed(3)
    with distribution.strategy.scope():
        model = tf.keras.Sequential(
            [
                tf.keras.Input((4,)),
                tf.keras.layers.Dense(16, "relu"),
                tf.keras.layers.Dense(3, "softmax", dtype="float32"),
            ]
        )
        model.compile(
            tf.keras.optimizers.Adam(0.01),
            "sparse_categorical_crossentropy",
            steps_per_execution=distribution.steps_per_execution,
        )
    history = model.fit(data.batch(distribution.batch_size), epochs=EPOCHS, verbose=0)
    document = {
        "line": distribution.line,
        "loss": history.history["loss"],
    }
    Path(result).write_text(json.dumps(document))


@pytest.fixture(scope="module")
def run(server, tmp_path_factory):
    """Runs a case in a process of its own, once: devices are configured once."""
    folder, results = tmp_path_factory.mktemp("cases"), {}

    def run(name):
        if name not in results:
            result, log = folder / "result.json", folder / name
            environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
            process = multiprocessing.get_context("forkserver").Process(
                target=call_as_node,
                args=(f"{__name__}:train", environment, log, CASES[name], str(result)),
            )
            process.start()
            process.join()
            assert process.exitcode == 0, log.read_text()
            results[name] = json.loads(result.read_text())
        return results[name]

    return run


ONE = "one_device: 1 replica on the CPU, since no accelerator is visible"
FOUR = "mirrored: 4 replicas on 4 CPUs, since train.replicas is 4"
TWO = "mirrored: 2 replicas on 2 CPUs, since train.replicas is 2"
CENTRAL = "central_storage: 2 replicas on 2 CPUs, as train.strategy says"
acceptance = pytest.mark.acceptance


@pytest.mark.parametrize(
    ("case", "line", "tolerance"),
    [
        ("one_device", ONE, 0),
        ("mirrored", FOUR, 1e-5),
        pytest.param("central_storage", CENTRAL, 1e-5, marks=acceptance),
        pytest.param("bfloat16", TWO, 1e-2, marks=acceptance),
        pytest.param("float16", FOUR, 1e-2, marks=acceptance),
    ],
)
def test_replicas_share_the_batch_and_lose_as_one(run, case, line, tolerance):
    result, one = run(case), run("one_device")
    assert result["line"] == line
    assert result["loss"] == pytest.approx(one["loss"], rel=tolerance)
    assert result["loss"][-1] < 0.8 * result["loss"][0]


def test_a_gpu_that_is_not_there_is_an_error(run):
    error = run("no GPU")
    assert error.startswith("there is no GPU 99: this machine has 0\n")
