"""Which strategy is chosen from the config and from what is there, and why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.training.strategy.choice import choose, find_tpu, read_cluster
from sluice.errors import UsageError

pytestmark = pytest.mark.unit

TPU = ("local", "/dev/accel0 is a TPU")
WORKERS = {"worker": 3}
SERVED = {"chief": 1, "worker": 2, "ps": 1}
NOTHING: dict[str, Any] = {"gpus": 0, "tpu": None, "cluster": {}}


@pytest.mark.parametrize(
    ("given", "kind", "why"),
    [
        ({"tpu": TPU, "cluster": WORKERS, "gpus": 2}, "tpu", "/dev/accel0 is a TPU"),
        ({"cluster": WORKERS, "gpus": 2}, "multi_worker", "there are several workers"),
        ({"cluster": SERVED}, "parameter_server", "TF_CONFIG names parameter servers"),
        ({"gpus": 2}, "mirrored", "several GPUs are visible"),
        ({}, "one_device", "no accelerator is visible"),
        ({"gpus": 1, "replicas": 4}, "mirrored", "train.replicas is 4"),
    ],
)
def test_auto_takes_the_first_that_is_there(given, kind, why):
    assert choose("auto", **NOTHING | given) == (kind, f"since {why}")


@pytest.mark.parametrize(
    ("strategy", "given"),
    [("tpu", {}), ("multi_worker", {}), ("parameter_server", {"cluster": WORKERS})],
)
def test_what_is_asked_for_and_not_there_is_an_error(strategy, given):
    with pytest.raises(UsageError, match=f"{strategy} needs") as failure:
        choose(strategy, **NOTHING | given)
    assert failure.value.where == "train.strategy"


def test_a_tpu_is_found_by_variables_and_device_files(tmp_path):
    assert find_tpu({}, tmp_path) is None
    assert find_tpu({"TPU_NAME": "mine"}, tmp_path) == ("mine", "TPU_NAME is set")
    kubernetes = {"KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS": "grpc://10.0.0.1:8470"}
    found = find_tpu({"TPU_NAME": "mine", **kubernetes}, tmp_path)
    assert found is not None and found[0] == "grpc://10.0.0.1:8470"
    on_vm = {"TPU_SKIP_MDS_QUERY": "1"}
    (tmp_path / "vfio").mkdir()
    (tmp_path / "vfio" / "0").touch()
    assert find_tpu({}, tmp_path) is None, "any device passed through is there"
    assert find_tpu(on_vm, tmp_path) == ("local", f"{tmp_path}/vfio/0 is a TPU")
    (tmp_path / "accel0").touch()
    assert find_tpu({}, tmp_path) == ("local", f"{tmp_path}/accel0 is a TPU")


def test_the_cluster_is_that_of_tf_config():
    def read(cluster):
        return read_cluster({"TF_CONFIG": json.dumps({"cluster": cluster})})

    served = {"chief": ["a:1"], "worker": ["b:1", "b:2"], "ps": ["c:1"]}
    assert read(served) == SERVED
    # A service sets it for a single machine too.
    assert read({"chief": ["a:1"]}) == read_cluster({}) == {}


@pytest.mark.parametrize("text", ["{", "[]", '{"cluster": {"worker": 2}}'])
def test_a_damaged_tf_config_is_an_error(text):
    with pytest.raises(UsageError, match="TF_CONFIG"):
        read_cluster({"TF_CONFIG": text})
