"""CPU cores and memory available to this process: of the machine or its cgroup."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

_PROC = Path("/proc/self/cgroup")
_MOUNT = Path("/sys/fs/cgroup")
# "Unlimited" is the largest number of pages in version 1, and "max" in version 2.
_UNLIMITED = 2**60


@dataclass(frozen=True)
class CgroupLimits:
    """Limits of a control group; each is None if there is no limit.

    Attributes:
      memory_bytes: the tightest limit of the group and those above it.
      memory_free_bytes: what is left of it; reclaimable file cache counts as free.
      cores: CPU time per wall time.
    """

    memory_bytes: int | None = None
    memory_free_bytes: int | None = None
    cores: float | None = None


def cgroup_limits(proc: Path = _PROC, mount: Path = _MOUNT) -> CgroupLimits:
    """Reads the limits, of version 1, 2 or both; none where there are no groups."""
    if not proc.is_file():
        return CgroupLimits()
    memory = [
        (limit, _used(folder))
        for folder in _folders(proc, mount, "memory")
        if (limit := _memory_limit(folder)) is not None
    ]
    cores = [
        quota
        for folder in _folders(proc, mount, "cpu")
        if (quota := _cores(folder)) is not None
    ]
    return CgroupLimits(
        memory_bytes=min((limit for limit, _ in memory), default=None),
        memory_free_bytes=min(
            (max(limit - used, 0) for limit, used in memory), default=None
        ),
        cores=min(cores, default=None),
    )


def free_memory_bytes(limits: CgroupLimits | None = None) -> int:
    """Returns the memory that can be taken without swapping."""
    available = psutil.virtual_memory().available
    free = (limits or cgroup_limits()).memory_free_bytes
    return available if free is None else min(available, free)


def total_memory_bytes() -> int:
    """Returns the memory of the machine, or the limit of the control group."""
    total = psutil.virtual_memory().total
    return min(total, cgroup_limits().memory_bytes or total)


def usable_cores(limits: CgroupLimits | None = None) -> int:
    """Returns the number of whole cores that may be used, at least 1."""
    allowed = len(os.sched_getaffinity(0))
    cores = (limits or cgroup_limits()).cores
    return allowed if cores is None else max(1, min(allowed, int(cores)))


def _folders(proc: Path, mount: Path, controller: str) -> Iterator[Path]:
    """Yields the folders of the group and of the groups above it, in each hierarchy."""
    for line in proc.read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            bases = [mount, mount / "unified"]
        elif controller in controllers.split(","):
            bases = [mount / controller, mount / controllers]
        else:
            continue
        for base in dict.fromkeys(bases):
            # In a container the path may be the host's; the mount is then the group.
            group = base / path.lstrip("/")
            yield from (
                folder
                for folder in (group, *group.parents)
                if folder.is_relative_to(base)
            )


def _memory_limit(folder: Path) -> int | None:
    text = _read(folder, "memory.max") or _read(folder, "memory.limit_in_bytes")
    if not text or text == "max" or int(text) >= _UNLIMITED:
        return None
    return int(text)


def _used(folder: Path) -> int:
    text = _read(folder, "memory.current") or _read(folder, "memory.usage_in_bytes")
    pairs = (line.split() for line in _read(folder, "memory.stat").splitlines())
    stat = {name: int(value) for name, value in pairs}
    cache = stat.get("total_inactive_file", stat.get("inactive_file", 0))
    return max(int(text or 0) - cache, 0)


def _cores(folder: Path) -> float | None:
    if text := _read(folder, "cpu.max"):
        quota, period = text.split()
    else:
        quota = _read(folder, "cpu.cfs_quota_us")
        period = _read(folder, "cpu.cfs_period_us")
    if quota in ("", "max") or int(quota) <= 0:
        return None
    return int(quota) / int(period)


def _read(folder: Path, name: str) -> str:
    try:
        return (folder / name).read_text().strip()
    except OSError:
        return ""
