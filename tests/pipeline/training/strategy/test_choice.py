"""Which strategy is chosen from the config and from what is there, and why."""

from __future__ import annotations

import json

import pytest

from pipeline.training.strategy.choice import (
    Choice,
    Cluster,
    Tpu,
    choose,
    find_tpu,
    read_cluster,
)
from sluice.errors import UsageError

pytestmark = pytest.mark.unit

TPU = Tpu("local", "/dev/accel0 is a TPU")
WORKERS = Cluster(workers=3, worker=1, parameter_servers=0, is_chief=False)
SERVED = Cluster(workers=2, worker=0, parameter_servers=1, is_chief=True)


@pytest.mark.parametrize(
    ("given", "kind", "why"),
    [
        ({"tpu": TPU, "cluster": WORKERS, "gpus": 2}, "tpu", "/dev/accel0 is a TPU"),
        ({"cluster": WORKERS, "gpus": 2}, "multi_worker", "TF_CONFIG names 3 workers"),
        ({"cluster": WORKERS, "processes": 3}, "multi_worker", "train.processes is 3"),
        ({"cluster": SERVED}, "parameter_server", "TF_CONFIG names parameter servers"),
        ({"gpus": 2}, "mirrored", "several GPUs are visible"),
        ({"gpus": 1}, "one_device", "one GPU is visible"),
        ({"gpus": 0}, "one_device", "no accelerator is visible"),
        ({"gpus": 1, "replicas": 4}, "mirrored", "train.replicas is 4"),
    ],
)
def test_auto_takes_the_first_that_is_there(given, kind, why):
    assert choose("auto", **{"gpus": 0, **given}) == Choice(kind, f"since {why}")


@pytest.mark.parametrize(
    ("strategy", "given"),
    [
        ("one_device", {"gpus": 4, "tpu": TPU}),
        ("mirrored", {"gpus": 0, "cluster": WORKERS}),
        ("central_storage", {"gpus": 2}),
        ("tpu", {"gpus": 0, "tpu": TPU}),
        ("multi_worker", {"gpus": 0, "cluster": WORKERS}),
        ("parameter_server", {"gpus": 0, "cluster": SERVED}),
    ],
)
def test_what_is_asked_for_is_taken(strategy, given):
    assert choose(strategy, **given) == Choice(strategy, "as train.strategy says")


@pytest.mark.parametrize(
    ("strategy", "given", "what"),
    [
        ("tpu", {}, "no TPU was found for the strategy 'tpu'"),
        ("multi_worker", {}, "there are no workers for the strategy 'multi_worker'"),
        ("parameter_server", {"cluster": WORKERS}, "there are no parameter servers"),
    ],
)
def test_what_is_asked_for_and_not_there_is_an_error(strategy, given, what):
    with pytest.raises(UsageError, match=what) as failure:
        choose(strategy, gpus=1, **given)
    assert failure.value.where == "train.strategy"


def test_a_tpu_is_found_by_variables_and_device_files(tmp_path):
    assert find_tpu({}, tmp_path) is None
    assert find_tpu({"TPU_NAME": "mine"}, tmp_path) == Tpu("mine", "TPU_NAME is set")
    kubernetes = {"KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS": "grpc://10.0.0.1:8470"}
    found = find_tpu({"TPU_NAME": "mine", **kubernetes}, tmp_path)
    assert found is not None
    assert found.name == "grpc://10.0.0.1:8470"

    (tmp_path / "vfio").mkdir()
    (tmp_path / "vfio" / "vfio").touch()
    on_vm = {"TPU_ACCELERATOR_TYPE": "v5litepod-8"}
    assert find_tpu(on_vm, tmp_path) is None
    (tmp_path / "vfio" / "0").touch()
    assert find_tpu({}, tmp_path) is None, "any device passed through is there"
    assert find_tpu(on_vm, tmp_path) == Tpu("local", f"{tmp_path}/vfio/0 is a TPU")
    (tmp_path / "accel0").touch()
    assert find_tpu({}, tmp_path) == Tpu("local", f"{tmp_path}/accel0 is a TPU")


def config(task: str, index: int, **cluster: int) -> dict[str, str]:
    hosts = {
        kind: [f"host{n}:1" for n in range(count)] for kind, count in cluster.items()
    }
    task_ = {"type": task, "index": index}
    return {"TF_CONFIG": json.dumps({"cluster": hosts, "task": task_})}


@pytest.mark.parametrize(
    ("environ", "cluster"),
    [
        ({}, None),
        ({"TF_CONFIG": ""}, None),
        ({"TF_CONFIG": "{}"}, None),
        (config("worker", 0, worker=1), None),
        (config("chief", 0, chief=1), None),
        (config("worker", 0, worker=2), Cluster(2, 0, 0, True)),
        (config("worker", 1, worker=2), Cluster(2, 1, 0, False)),
        (config("chief", 0, chief=1, worker=2), Cluster(3, 0, 0, True)),
        (config("worker", 0, chief=1, worker=2), Cluster(3, 1, 0, False)),
        (config("chief", 0, chief=1, worker=2, ps=1), Cluster(2, 0, 1, True)),
        (config("ps", 0, chief=1, worker=2, ps=1), Cluster(2, 0, 1, False)),
    ],
)
def test_tf_config_names_the_cluster_and_this_task(environ, cluster):
    assert read_cluster(environ) == cluster


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"cluster": 1}', '{"task": {"index": "x"}}']
)
def test_a_damaged_tf_config_is_an_error(text):
    with pytest.raises(UsageError, match="TF_CONFIG cannot be read"):
        read_cluster({"TF_CONFIG": text})
