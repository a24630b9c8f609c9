"""The cluster of a training on several machines. Imports no TensorFlow.

``TF_CONFIG`` describes it, as for TensorFlow. Without it, a step of Slurm with several
tasks is a cluster, and so is an indexed Job of Kubernetes with ``SLUICE_HOSTS``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass

from pipeline.training.strategy.choice import TF_CONFIG, read_cluster
from sluice.errors import UsageError

# The addresses of an indexed Job's pods, in their order, joined by commas.
HOSTS = "SLUICE_HOSTS"
_INDEX = "JOB_COMPLETION_INDEX"
_JOBS = ("chief", "worker", "ps")
# Below the ports that Linux gives to outgoing connections.
_FIRST_PORT, _PORTS = 12_000, 20_000


@dataclass(frozen=True)
class Cluster:
    """A cluster of several tasks, and which one this process is.

    Attributes:
      addresses: ``host:port`` of each task, by job.
      job: ``chief``, ``worker`` or ``ps``.
      index: number of the task in its job.
    """

    addresses: Mapping[str, Sequence[str]]
    job: str
    index: int

    @property
    def tasks(self) -> list[tuple[str, int]]:
        """Job and index of all tasks, the chief first: it exports the model."""
        return [
            (job, index)
            for job in _JOBS
            for index in range(len(self.addresses.get(job, ())))
        ]

    @property
    def is_chief(self) -> bool:
        return (self.job, self.index) == self.tasks[0]

    def address(self, job: str, index: int) -> tuple[str, int]:
        """Returns host and port of a task."""
        host, _, port = self.addresses[job][index].rpartition(":")
        return host, int(port)

    def describe(self, job: str, index: int) -> str:
        """Returns a task and its address, for people."""
        return f"{job} {index} at {self.addresses[job][index]}"

    def to_json(self) -> str:
        """Returns the value of ``TF_CONFIG``."""
        task = {"type": self.job, "index": self.index}
        return json.dumps({"cluster": self.addresses, "task": task})


def find_cluster(environ: Mapping[str, str] = os.environ) -> Cluster | None:
    """Returns the cluster that this process is a task of; None without one.

    Raises:
      UsageError: what describes it is damaged or incomplete.
    """
    if environ.get(TF_CONFIG):
        return _in_tf_config(environ) if read_cluster(environ) else None
    if int(environ.get("SLURM_STEP_NUM_TASKS") or 1) > 1:
        return Cluster(_of_slurm(environ), "worker", int(environ["SLURM_PROCID"]))
    if len(hosts := [host for host in environ.get(HOSTS, "").split(",") if host]) > 1:
        if not environ.get(_INDEX, "").isdecimal():
            raise UsageError(f"{HOSTS} is set, but not {_INDEX}")
        return _checked({"worker": hosts}, "worker", int(environ[_INDEX]), HOSTS)
    return None


def join_as_chief(environ: MutableMapping[str, str] = os.environ) -> None:
    """Sets ``TF_CONFIG`` where another variable describes a cluster.

    Raises:
      UsageError: this process is not the chief of its cluster, or the description is
        damaged.
    """
    cluster = find_cluster(environ)
    if cluster is None:
        return
    if not cluster.is_chief:
        raise UsageError(
            f"this is {cluster.describe(cluster.job, cluster.index)}: the run belongs "
            f"to the first task of a cluster, {cluster.describe(*cluster.tasks[0])}",
            hint="sluice worker NAME",
        )
    environ[TF_CONFIG] = cluster.to_json()


def _in_tf_config(environ: Mapping[str, str]) -> Cluster:
    described = json.loads(environ[TF_CONFIG])
    task = described.get("task") or {}
    job, index = task.get("type"), task.get("index")
    return _checked(described["cluster"], job, index, TF_CONFIG)


def _checked(
    addresses: Mapping[str, Sequence[str]], job: object, index: object, variable: str
) -> Cluster:
    """Returns the cluster with a task of it.

    Raises:
      UsageError: there is no such task, or an address has no port.
    """
    if others := {*addresses} - {*_JOBS}:
        raise UsageError(f"{variable} has the job {min(others)}: {', '.join(_JOBS)}")
    known = addresses.get(job, ()) if isinstance(job, str) else ()
    if not isinstance(index, int) or not 0 <= index < len(known):
        raise UsageError(f"{variable} has no task {job} {index} in its cluster")
    for address in (item for listed in addresses.values() for item in listed):
        if not re.fullmatch(r"\S+:\d+", address):
            raise UsageError(f"{variable} has an address without a port: {address}")
    assert isinstance(job, str)
    return Cluster(addresses, job, index)


def _of_slurm(environ: Mapping[str, str]) -> dict[str, list[str]]:
    """Returns the addresses of the tasks that ``srun`` starts, one on each node.

    TensorFlow's ``SlurmClusterResolver`` takes the names of nodes for host names, and
    the same port in every job.
    """
    nodes, count = environ["SLURM_STEP_NODELIST"], environ["SLURM_STEP_NUM_TASKS"]
    names = _scontrol("show", "hostnames", nodes).split()
    if len(names) != int(count):
        text = f"{count} tasks are on {len(names)} nodes: each node trains in one task"
        raise UsageError(text, where=nodes, hint="srun --ntasks-per-node=1")
    shown = _scontrol("--oneliner", "show", "node", nodes)
    hosts = dict(re.findall(r"^NodeName=(\S+) .*?\bNodeAddr=(\S+)", shown, re.M))
    first = _FIRST_PORT + int(environ["SLURM_JOB_ID"]) % _PORTS
    listed = [f"{hosts.get(name, name)}:{first + i}" for i, name in enumerate(names)]
    return {"worker": listed}


def _scontrol(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["scontrol", *arguments], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"Slurm does not say where its tasks run: {error}") from error
    if done.returncode:
        text = done.stderr.strip().partition("\n")[0]
        raise UsageError(f"Slurm does not say where its tasks run: {text}")
    return done.stdout
