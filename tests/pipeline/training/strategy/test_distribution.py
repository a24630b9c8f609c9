"""Training in every distribution of one machine, on logical CPUs; TPUs are faked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sluice.project import own_root

pytestmark = pytest.mark.tf

CASES = Path(__file__).with_name("train_cases.py")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def results(logs: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, CASES, logs],
        env={**os.environ, "PYTHONPATH": str(own_root()), "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.gpu
def test_on_a_gpu_the_losses_are_those_of_the_cpu(results, tmp_path):
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        pytest.skip("no GPU")
    done = subprocess.run(
        [sys.executable, CASES, tmp_path],
        env={**os.environ, "PYTHONPATH": str(own_root())},
        capture_output=True,
        text=True,
    )
    on_gpu = json.loads(done.stdout.splitlines()[-1])
    for case in ("one_device", "mirrored 4", "central_storage", "float16"):
        assert "GPU" in on_gpu[case]["line"]
        assert on_gpu[case]["loss"] == pytest.approx(results[case]["loss"], rel=1e-2)


@pytest.mark.parametrize(
    ("case", "line", "batch_per_replica"),
    [
        (
            "one_device",
            "one_device: 1 replica on the CPU, since no accelerator is visible",
            32,
        ),
        (
            "mirrored 4",
            "mirrored: 4 replicas on 4 logical devices of the CPU, since "
            "train.replicas is 4",
            8,
        ),
        (
            "central_storage",
            "central_storage: 2 replicas on 2 logical devices of the CPU, as "
            "train.strategy says",
            16,
        ),
    ],
)
def test_replicas_share_the_batch_and_lose_as_one(
    results, case, line, batch_per_replica
):
    result = results[case]
    assert result["line"] == line
    assert result["batch_per_replica"] == batch_per_replica
    assert result["loss"] == pytest.approx(results["one_device"]["loss"], rel=1e-5)
    assert result["loss"][-1] < 0.8 * result["loss"][0]


def test_precision_is_that_of_layers_and_is_reset(results):
    mixed, single = results["mirrored 2"]
    assert (mixed["hidden"], single["hidden"]) == ("bfloat16", "float32")
    one = results["one_device"]["loss"]
    assert mixed["loss"] != single["loss"]
    assert mixed["loss"] == pytest.approx(one, rel=1e-2)
    assert single["loss"] == pytest.approx(one, rel=1e-5)
    for result in (mixed, single, results["float16"]):
        assert result["output"] == "float32"
        assert result["weights"] == ["float32"]


def test_the_loss_is_scaled_in_float16(results):
    result, one = results["float16"], results["one_device"]
    assert result["hidden"] == "float16"
    assert "LossScaleOptimizer" in result["optimizer"]
    # Four steps per execution, and two in the last of an epoch of six.
    assert result["steps"] == one["steps"]
    assert result["loss"] == pytest.approx(one["loss"], rel=1e-2)


def test_the_log_has_the_placement_of_operations(results, logs):
    placed = (logs / "one_device.log").read_text()
    assert "MatMul: (MatMul): /job:localhost/replica:0/task:0/device:CPU:0" in placed
    # The last ones, too: the process ends without flushing.
    assert placed.endswith("\n")
    assert "device:CPU" not in (logs / "mirrored 4.log").read_text()


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("too late", "the devices cannot be configured any more\n"),
        ("no such GPU", "there is no GPU 99\n"),
        ("batch", "train.batch_size 30 is not a multiple of 4 replicas\n"),
        (
            "local paths",
            "the TPU 'grpc://10.0.0.1:8470' is on another machine and reads no local "
            "files\n  where:    the data and the model\n"
            "  expected: paths that begin with gs://\n  - /data/eval-*\n",
        ),
    ],
)
def test_what_cannot_be_had_is_an_error(results, case, message):
    assert results[case].startswith(message)


@pytest.mark.parametrize(
    ("case", "calls", "place"),
    [
        ("local TPU", ["initialize"], "the local TPU"),
        ("remote TPU", ["connect", "initialize"], "the TPU 'grpc://10.0.0.1:8470'"),
    ],
)
def test_a_tpu_is_resolved_connected_and_initialized(results, case, calls, place):
    result = results[case]
    assert result["calls"] == calls
    assert result["line"] == (
        f"tpu: 8 replicas on {place}, since TPU_NAME is set; 16 examples per replica; "
        "a multiple of 128 would use the TPU better"
    )
    assert (result["replicas"], result["batch_size"]) == (8, 128)
    assert (result["steps_per_execution"], result["static_shapes"]) == (50, True)
    assert "a_xf is string: turn it into numbers" in result["strings"]


def test_the_train_step_is_traced_for_a_tpu(results):
    result = results["local TPU"]
    assert result["copies"] == result["replicas"]
    # Features and class ids of each replica.
    assert result["shapes"] == [[16, 4]] * 8 + [[16, 1]] * 8
    # Replicated, in a loop of steps on the device, gradients summed over replicas.
    assert {"TPUReplicateMetadata", "CrossReplicaSum", "While"} <= set(result["ops"])
