"""The cores that a run may use."""

from __future__ import annotations

import os

from runners.doctor.check import Check
from sluice.cgroup_limits import CgroupLimits, cgroup_limits


def check_cores(limits: CgroupLimits | None = None) -> Check:
    """Returns the cores of the machine, of this process, and the container's share.

    Args:
      limits: of the control group; None reads them.
    """
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
