"""How many nodes run at the same time where nobody says so."""

from __future__ import annotations

import os

from runners.doctor.cgroup_limits import CgroupLimits, cgroup_limits


def default_workers(limits: CgroupLimits | None = None) -> int:
    """Returns the whole cores that this process may use, at least 1.

    Args:
      limits: of the control group, such as a container's; None reads them.
    """
    allowed = len(os.sched_getaffinity(0))
    cores = (limits or cgroup_limits()).cores
    return allowed if cores is None else max(1, min(allowed, int(cores)))
