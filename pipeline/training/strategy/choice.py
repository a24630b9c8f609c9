"""Which distribution strategy a training uses, and why. Imports no TensorFlow."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from sluice.errors import UsageError

# Where TensorFlow finds its cluster, and its task there.
TF_CONFIG = "TF_CONFIG"
# In their order of precedence in TensorFlow (tpu/client/client.py).
_TPU_VARIABLES = ("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "TPU_NAME")
LOCAL_TPU = "local"
_NEEDED = {
    "tpu": "a TPU, named by TPU_NAME or found as a device of a TPU VM",
    "multi_worker": "workers in TF_CONFIG, or train.processes",
    "parameter_server": "parameter servers in TF_CONFIG, or train.parameter_servers",
}


def find_tpu(
    environ: Mapping[str, str] = os.environ, dev: Path = Path("/dev")
) -> tuple[str, str] | None:
    """Returns the TPU of this machine or environment, and how it was found.

    It is ``local``, a name or a gRPC address; no network is asked. A TPU VM has device
    files ``accel*``, or with newer TPUs ``vfio/*``, which other machines may have too,
    and variables ``TPU_*``.
    """
    for variable in _TPU_VARIABLES:
        if environ.get(variable):
            return environ[variable], f"{variable} is set"
    files = sorted(dev.glob("accel[0-9]*"))
    if any(name.startswith("TPU_") for name in environ):
        files += sorted(dev.glob("vfio/[0-9]*"))
    return (LOCAL_TPU, f"{files[0]} is a TPU") if files else None


def read_cluster(environ: Mapping[str, str] = os.environ) -> dict[str, int]:
    """Returns the number of tasks by job in ``TF_CONFIG``; empty without a cluster.

    Raises:
      UsageError: it is damaged.
    """
    text = environ.get(TF_CONFIG) or "{}"
    try:
        cluster = json.loads(text).get("cluster", {})
        tasks = {job: len(addresses) for job, addresses in cluster.items()}
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise UsageError(f"TF_CONFIG has no cluster in JSON: {text:.200}") from error
    return tasks if sum(tasks.values()) > 1 else {}


def choose(
    strategy: str,
    *,
    gpus: int,
    tpu: tuple[str, str] | None,
    cluster: Mapping[str, int],
    replicas: int | None = None,
) -> tuple[str, str]:
    """Returns the kind of strategy to use, and why.

    Raises:
      UsageError: what the configured strategy needs is not there.
    """
    servers = cluster.get("ps", 0)
    if strategy != "auto":
        found = {"tpu": tpu, "multi_worker": cluster, "parameter_server": servers}
        if not found.get(strategy, True):
            needed = f"{strategy} needs {_NEEDED[strategy]}"
            raise UsageError(needed, where="train.strategy")
        return strategy, "as train.strategy says"
    if replicas is not None:
        return "mirrored", f"since train.replicas is {replicas}"
    if tpu is not None:
        return "tpu", f"since {tpu[1]}"
    if servers:
        return "parameter_server", "since TF_CONFIG names parameter servers"
    if cluster:
        return "multi_worker", "since there are several workers"
    if gpus > 1:
        return "mirrored", "since several GPUs are visible"
    visible = "one GPU is visible" if gpus else "no accelerator is visible"
    return "one_device", f"since {visible}"
