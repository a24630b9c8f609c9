"""What a container allows, and how many nodes run at once by default."""

import os

import psutil
import pytest

from sluice import machine_resources as resources

pytestmark = pytest.mark.unit

GIB = 2**30
VERSION_2 = {
    "proc": "0::/pod/container",
    "cpu.weight": 100,
    "pod/memory.max": 4 * GIB,
    "pod/memory.current": 3 * GIB,
    "pod/memory.stat": f"anon 5\ninactive_file {GIB}",
    "pod/cpu.max": "250000 100000",
    "pod/container/memory.max": "max",
    "pod/container/cpu.max": "max 100000",
}
# In a container that sees the host's path.
VERSION_1 = {
    "proc": "4:memory:/docker/ab12\n2:cpu,cpuacct:/docker/ab12\n0::/",
    "memory/memory.limit_in_bytes": 2 * GIB,
    "memory/memory.usage_in_bytes": GIB,
    "memory/memory.stat": f"inactive_file 1\ntotal_inactive_file {GIB // 2}",
    "cpu,cpuacct/cpu.cfs_quota_us": 50000,
    "cpu,cpuacct/cpu.cfs_period_us": 100000,
}
UNLIMITED = {
    "proc": "4:memory:/\n1:cpu:/",
    "memory/memory.limit_in_bytes": 9223372036854771712,
    "cpu/cpu.cfs_quota_us": -1,
    "cpu/cpu.cfs_period_us": 100000,
}


@pytest.mark.parametrize(
    ("files", "cores", "free"),
    [
        (VERSION_2, 2, 2 * GIB),
        (VERSION_1, 1, 3 * GIB // 2),
        (UNLIMITED, 8, 8 * GIB),
        ({}, 8, 8 * GIB),
    ],
)
def test_the_tightest_limit_counts(tmp_path, monkeypatch, files, cores, free):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    monkeypatch.setattr(resources, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(resources, "_MOUNT", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    memory = psutil.virtual_memory()._replace(total=16 * GIB, available=8 * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    assert resources.usable_cores() == cores
    assert resources.free_memory_bytes() == free
