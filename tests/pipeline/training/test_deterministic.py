"""Trainings with ``run_fn``: equal weights if deterministic, exports in float32."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sluice.project import own_root
from tests.kit.small_training import write_examples

pytestmark = pytest.mark.tf

# Trains with run_fn, in a process forked from one that has imported TensorFlow: whether
# operations are deterministic is set for a process.
SCRIPT = """
import json, os, sys, traceback, types
from sluice.compat import prepare_environment
prepare_environment()
import tensorflow as tf
from pipeline.training import run_fn as training
from tests.kit.small_training import FEATURES, OUTPUT
from tests.kit.trainings import fn_args

data, work = sys.argv[1:]
training.tft = types.SimpleNamespace(TFTransformOutput=lambda folder: OUTPUT)
exported = []
training.export_model = lambda model, *args, **kwargs: exported.append(model)


def build_model(inputs, params):
    keras_inputs = inputs.keras_inputs()
    layers = tf.keras.layers
    x = layers.Concatenate()(list(keras_inputs.values()))
    x = layers.Reshape((2, 1))(layers.Dense(2)(x))
    x = layers.Dropout(0.5)(layers.Conv1D(8, 2)(x))
    return tf.keras.Model(keras_inputs, inputs.output_layer()(layers.Flatten()(x)))


def train(name, seed, deterministic, precision="float32"):
    settings = {"epochs": 3, "batch_size": 8, "seed": seed, "precision": precision,
                "deterministic": deterministic}
    model, output = "__main__:build_model", f"{work}/{name}"
    training.run_fn(fn_args(settings, FEATURES, model, data, output))
    # Only with deterministic operations is a random one without a seed refused.
    tf.random.set_seed(None)
    try:
        tf.random.normal([1])
        refused = False
    except RuntimeError:
        refused = True
    with open(f"{work}/{name}.json", "w") as file:
        dtypes = sorted({layer.compute_dtype for layer in exported[0].layers})
        policy = tf.keras.mixed_precision.global_policy().name
        json.dump([refused, dtypes, policy], file)


for case in (("a", 5, True), ("b", 5, True),
             ("half", 5, False, "mixed_bfloat16")):
    pid = os.fork()
    if pid == 0:
        try:
            train(*case)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deterministic")
    data = write_examples(tmp_path_factory.mktemp("examples"))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, data, folder],
        cwd=own_root(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


def weights(folder: Path) -> list[bytes]:
    import h5py

    arrays: list[Any] = []
    with h5py.File(folder / "run/model.weights.h5") as file:
        file.visititems(lambda name, item: arrays.append(item))
        return [item[()].tobytes() for item in arrays if isinstance(item, h5py.Dataset)]


def test_weights_and_history_are_equal(work):
    assert len(weights(work / "a")) >= 6
    assert weights(work / "a") == weights(work / "b")
    first, second = (work / name / "run/history.json" for name in "ab")
    assert first.read_text() == second.read_text()


def test_operations_are_deterministic_only_where_asked(work):
    assert json.loads((work / "a.json").read_text())[0] is True
    assert json.loads((work / "half.json").read_text())[0] is False


def test_a_model_of_mixed_precision_is_exported_in_float32(work):
    facts = json.loads((work / "half/run/training.json").read_text())
    assert facts["precision"] == "mixed_bfloat16"
    _, dtypes, policy = json.loads((work / "half.json").read_text())
    assert (dtypes, policy) == (["float32"], "float32")
