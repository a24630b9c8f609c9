"""What a container allows, and how many nodes run at once by default."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sluice.machine_resources import CgroupLimits, cgroup_limits, usable_cores

pytestmark = pytest.mark.unit

GIB = 2**30


def write_group(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def test_limits_of_cgroup_2_come_from_the_tightest_above(tmp_path: Path) -> None:
    proc, mount = tmp_path / "cgroup", tmp_path / "mount"
    proc.write_text("0::/pod/container\n")
    write_group(mount, cpu__weight=100)
    write_group(
        mount / "pod",
        memory__max=4 * GIB,
        memory__current=3 * GIB,
        memory__stat=f"anon 5\ninactive_file {GIB}",
        cpu__max="150000 100000",
    )
    write_group(mount / "pod/container", memory__max="max", cpu__max="max 100000")
    assert cgroup_limits(proc, mount) == CgroupLimits(4 * GIB, 2 * GIB, 1.5)


def test_limits_of_cgroup_1_in_a_container_that_sees_the_hosts_path(
    tmp_path: Path,
) -> None:
    proc, mount = tmp_path / "cgroup", tmp_path / "mount"
    proc.write_text("4:memory:/docker/ab12\n2:cpu,cpuacct:/docker/ab12\n0::/\n")
    write_group(
        mount / "memory",
        memory__limit_in_bytes=2 * GIB,
        memory__usage_in_bytes=GIB,
        memory__stat=f"inactive_file 1\ntotal_inactive_file {GIB // 2}",
    )
    write_group(
        mount / "cpu,cpuacct", cpu__cfs_quota_us=50000, cpu__cfs_period_us=100000
    )
    assert cgroup_limits(proc, mount) == CgroupLimits(2 * GIB, 3 * GIB // 2, 0.5)


def test_no_limits_and_no_groups(tmp_path: Path) -> None:
    proc, mount = tmp_path / "cgroup", tmp_path / "mount"
    assert cgroup_limits(proc, mount) == CgroupLimits()
    proc.write_text("4:memory:/\n1:cpu:/\n")
    write_group(mount / "memory", memory__limit_in_bytes=9223372036854771712)
    write_group(mount / "cpu", cpu__cfs_quota_us=-1, cpu__cfs_period_us=100000)
    assert cgroup_limits(proc, mount) == CgroupLimits()


@pytest.mark.parametrize(
    ("affinity", "cores", "workers"),
    [
        (8, None, 8),
        (8, 2.0, 2),
        (8, 2.5, 2),
        (8, 0.5, 1),
        (2, 16.0, 2),
        (1, None, 1),
    ],
)
def test_a_container_gets_its_share(
    monkeypatch: pytest.MonkeyPatch, affinity: int, cores: float | None, workers: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(affinity)))
    assert usable_cores(CgroupLimits(cores=cores)) == workers


def test_this_machine_gives_at_least_one() -> None:
    assert 1 <= usable_cores() <= len(os.sched_getaffinity(0))
