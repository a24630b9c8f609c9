"""CPU cores and memory available to this process: of the machine or its cgroup."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from sluice.node_environment import node_environment

_PROC = Path("/proc/self/cgroup")
_MOUNT = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Returns the number of whole cores that may be used, at least 1."""
    cores = len(os.sched_getaffinity(0))
    for group in _groups("cpu"):
        time = _read(group, "cpu.max") or [
            *_read(group, "cpu.cfs_quota_us"),
            *_read(group, "cpu.cfs_period_us"),
        ]
        if len(time) == 2 and time[0] not in ("max", "-1"):
            cores = min(cores, int(time[0]) // int(time[1]))
    return max(1, cores)


def data_workers() -> int:
    """Returns how many processes a step that works on data has."""
    return int(node_environment().workers or usable_cores())


def free_memory_bytes() -> int:
    """Returns the memory that can be taken without swapping; file cache is free."""
    free = psutil.virtual_memory().available
    for group in _groups("memory"):
        words = _read(group, "memory.stat")
        stat = dict(zip(words[::2], map(int, words[1::2]), strict=True))
        cache = stat.get("total_inactive_file", stat.get("inactive_file", 0))
        used = _read(group, "memory.current") or _read(group, "memory.usage_in_bytes")
        free = min(free, _limit(group) - int(used[0] if used else 0) + cache)
    return max(0, free)


def _groups(controller: str) -> list[Path]:
    """Returns the folders of this process's group and of those above it."""
    if not _PROC.is_file():
        return []
    lines = (line.split(":", 2) for line in _PROC.read_text().splitlines())
    paths = {names: path for _, names, path in lines}
    # Version 1 has a hierarchy per controllers, version 2 a single one without names.
    names = next((known for known in paths if controller in known.split(",")), "")
    base = _MOUNT / names
    # In a container the path may be the host's; the mount is then the group.
    group = base / paths.get(names, "/").lstrip("/")
    return [path for path in (group, *group.parents) if path.is_relative_to(base)]


def _limit(group: Path) -> int:
    words = _read(group, "memory.max") or _read(group, "memory.limit_in_bytes")
    return int(words[0]) if words and words != ["max"] else 2**63


def _read(group: Path, name: str) -> list[str]:
    try:
        return (group / name).read_text().split()
    except OSError:
        return []
