"""How many nodes run at once by default."""

from __future__ import annotations

import os

import pytest

from sluice.cgroup_limits import CgroupLimits
from sluice.usable_cores import usable_cores

pytestmark = pytest.mark.unit


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
