"""Checks of the machine: memory, cores, forks, credentials for Google Cloud."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil

from runners.doctor.check import Check, CheckState, in_gib
from sluice.machine_resources import CgroupLimits, cgroup_limits, free_memory_bytes

# A process that has imported TFX holds about 0.7 GiB before it does anything.
_SCARCE_MEMORY_BYTES = 2 * 2**30
_MIN_MEMORY_BYTES = 2**30


def check_memory(limits: CgroupLimits | None = None) -> Check:
    """Returns the total and available memory, within the container's limit."""
    limits = limits or cgroup_limits()
    memory = psutil.virtual_memory()
    available = free_memory_bytes(limits)
    found = f"{in_gib(memory.available)} available of {in_gib(memory.total)}"
    if limits.memory_bytes is not None and limits.memory_bytes < memory.total:
        free = limits.memory_free_bytes or 0
        found += (
            f"; the cgroup allows {in_gib(limits.memory_bytes)}, {in_gib(free)} left"
        )
    if available >= _SCARCE_MEMORY_BYTES:
        return Check("memory", "ok", found)
    state: CheckState = "warning" if available >= _MIN_MEMORY_BYTES else "problem"
    hint = "end other programs or raise the container's limit; sluice run --workers 1"
    return Check("memory", state, found, hint)


def check_cores(limits: CgroupLimits | None = None) -> Check:
    """Returns the cores of machine and process, within the container's limit."""
    limits = limits or cgroup_limits()
    allowed = len(os.sched_getaffinity(0))
    found = f"{allowed} of {os.cpu_count()}"
    usable = float(allowed)
    if limits.cores is not None and limits.cores < usable:
        usable = limits.cores
        found += f"; the cgroup allows the time of {usable:g}"
    if usable < 2:
        hint = "independent nodes gain nothing from running at the same time"
        return Check("cores", "warning", found, hint)
    return Check("cores", "ok", found)


def check_forks() -> Check:
    """Forks once. Without forks each node imports TFX itself, which takes 10 s."""
    try:
        child = os.fork()
    except OSError as error:
        found = f"a fork failed: {error.strerror}"
        return Check(
            "forks", "problem", found, "raise the limit of processes: ulimit -u"
        )
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    if sys.platform != "linux":
        found = f"not safe on {sys.platform}: each node imports TFX itself"
        return Check("forks", "warning", found, "run on Linux")
    return Check("forks", "ok", "nodes are forked from a process that has imported TFX")


_CREDENTIALS_VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
_DEFAULT = "application_default_credentials.json"


def check_cloud_credentials() -> Check:
    """Looks for credentials where Google's libraries look first, without the network.

    The service account of the machine (the metadata server) is not looked for.
    """
    named = os.environ.get(_CREDENTIALS_VARIABLE)
    if named and os.access(named, os.R_OK) and Path(named).is_file():
        return Check("cloud", "ok", f"{_CREDENTIALS_VARIABLE} names {named}")
    if named:
        found = f"{_CREDENTIALS_VARIABLE} names {named}, which is not a readable file"
        hint = f"correct or unset {_CREDENTIALS_VARIABLE}"
        return Check("cloud", "warning", found, hint)
    folder = os.environ.get("CLOUDSDK_CONFIG") or Path.home() / ".config" / "gcloud"
    default = Path(folder) / _DEFAULT
    if default.is_file():
        return Check("cloud", "ok", f"gcloud's default, {default}")
    return Check("cloud", "ok", "no credentials; local runs need none")
