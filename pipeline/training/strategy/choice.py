"""Which distribution strategy a training uses, and why. Imports no TensorFlow."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluice.errors import UsageError

_DEV = Path("/dev")

# In their order of precedence in TensorFlow (tpu/client/client.py).
_TPU_VARIABLES = ("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "TPU_NAME")
LOCAL_TPU = "local"


@dataclass(frozen=True)
class Tpu:
    """A TPU: ``local``, a name or a gRPC address; and how it was found."""

    name: str
    found_by: str


@dataclass(frozen=True)
class Cluster:
    """The cluster of ``TF_CONFIG``.

    Attributes:
      workers: number of workers; a chief is one of them if there are no parameter
        servers.
      worker: number of this process among them; 0 for other tasks.
      parameter_servers: number of them.
      is_chief: whether this process is the chief, or worker 0 where there is none.
    """

    workers: int
    worker: int
    parameter_servers: int
    is_chief: bool


@dataclass(frozen=True)
class Choice:
    """A kind of strategy, and why it was chosen."""

    kind: str
    why: str


def find_tpu(environ: Mapping[str, str] = os.environ, dev: Path = _DEV) -> Tpu | None:
    """Returns the TPU of this machine or environment; asks no network.

    A TPU VM has device files ``accel*``, or with newer TPUs ``vfio/*``, which other
    machines may have too, and variables ``TPU_*``.
    """
    for variable in _TPU_VARIABLES:
        if environ.get(variable):
            return Tpu(environ[variable], f"{variable} is set")
    files = sorted(dev.glob("accel[0-9]*"))
    if any(name.startswith("TPU_") for name in environ):
        files += sorted(dev.glob("vfio/[0-9]*"))
    return Tpu(LOCAL_TPU, f"{files[0]} is a TPU") if files else None


def check_paths(tpu: Tpu, paths: Sequence[str]) -> None:
    """Checks that a TPU can read and write some paths.

    Raises:
      UsageError: it is on another machine, and a path is on this one.
    """
    local = [path for path in paths if not path.startswith("gs://")]
    if tpu.name != LOCAL_TPU and local:
        raise UsageError(
            f"the TPU {tpu.name!r} is on another machine and reads no local files",
            where="the data and the model",
            expected="paths that begin with gs://",
            examples=local,
            hint="run Sluice on the TPU VM itself, with TPU_NAME=local; or train on "
            "this machine, with train.strategy=one_device",
        )


def read_cluster(environ: Mapping[str, str] = os.environ) -> Cluster | None:
    """Returns the cluster of ``TF_CONFIG``, or None if it is of one process.

    Raises:
      UsageError: it is damaged.
    """
    text = environ.get("TF_CONFIG") or "{}"
    try:
        config: dict[str, Any] = json.loads(text)
        cluster, task = config.get("cluster", {}), config.get("task", {})
        chiefs, workers = len(cluster.get("chief", ())), len(cluster.get("worker", ()))
        servers = len(cluster.get("ps", ()))
        kind, index = task.get("type", ""), int(task.get("index", 0))
    except (ValueError, AttributeError, TypeError) as error:
        raise UsageError(
            "TF_CONFIG cannot be read",
            where="the environment variable TF_CONFIG",
            expected="a JSON object with 'cluster' and 'task'",
            actual=text[:200],
        ) from error
    if chiefs + workers + servers < 2:
        return None
    number = {"chief": 0, "worker": chiefs + index}.get(kind, 0)
    first = kind == "chief" or (not chiefs and kind == "worker" and index == 0)
    count = workers if servers else chiefs + workers
    return Cluster(count, number, servers, first)


def choose(
    strategy: str,
    *,
    gpus: int,
    tpu: Tpu | None = None,
    cluster: Cluster | None = None,
    replicas: int | None = None,
    processes: int | None = None,
) -> Choice:
    """Returns the kind of strategy to use.

    Raises:
      UsageError: what the configured strategy needs is not there.
    """
    if strategy != "auto":
        _check_present(strategy, tpu, cluster)
        return Choice(strategy, "as train.strategy says")
    if replicas is not None:
        return Choice("mirrored", f"since train.replicas is {replicas}")
    if tpu is not None:
        return Choice("tpu", f"since {tpu.found_by}")
    if cluster is not None:
        if cluster.parameter_servers:
            return Choice("parameter_server", "since TF_CONFIG names parameter servers")
        if processes:
            why = f"since train.processes is {processes}"
        else:
            why = f"since TF_CONFIG names {cluster.workers} workers"
        return Choice("multi_worker", why)
    if gpus > 1:
        return Choice("mirrored", "since several GPUs are visible")
    found = "one GPU is visible" if gpus else "no accelerator is visible"
    return Choice("one_device", f"since {found}")


def _check_present(strategy: str, tpu: Tpu | None, cluster: Cluster | None) -> None:
    if strategy == "tpu" and tpu is None:
        missing = "no TPU was found"
        expected = "TPU_NAME in the environment, or a TPU VM's device files"
    elif strategy in ("multi_worker", "parameter_server") and cluster is None:
        missing = "there are no workers"
        expected = "TF_CONFIG with more than one worker, or train.processes"
    elif strategy == "parameter_server" and cluster and not cluster.parameter_servers:
        missing = "there are no parameter servers"
        expected = "TF_CONFIG with tasks 'ps', or train.parameter_servers"
    else:
        return
    raise UsageError(
        f"{missing} for the strategy {strategy!r}",
        where="train.strategy",
        expected=expected,
        hint="train.strategy=auto takes what is there",
    )
