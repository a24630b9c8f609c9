"""The cores that this process has: a machine's, or what a container is allowed."""

from __future__ import annotations

import os

from sluice.cgroup_limits import CgroupLimits, cgroup_limits


def usable_cores(limits: CgroupLimits | None = None) -> int:
    """Returns how many whole cores that is, at least 1.

    Args:
      limits: of the control group, such as a container's; None reads them.
    """
    allowed = len(os.sched_getaffinity(0))
    cores = (limits or cgroup_limits()).cores
    return allowed if cores is None else max(1, min(allowed, int(cores)))
