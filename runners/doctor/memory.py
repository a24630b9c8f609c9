"""Memory of the machine and of the container."""

from __future__ import annotations

import psutil

from runners.doctor.check import Check, CheckState
from runners.doctor.in_gib import in_gib
from sluice.cgroup_limits import CgroupLimits, cgroup_limits

# A process that has imported TFX holds about 0.7 GiB before it does anything.
_SCARCE_BYTES = 2 * 2**30
_TOO_LITTLE_BYTES = 2**30


def check_memory(limits: CgroupLimits | None = None) -> Check:
    """Returns what there is and what is available, under the container's limit too.

    Args:
      limits: of the control group; None reads them.
    """
    limits = limits or cgroup_limits()
    memory = psutil.virtual_memory()
    available = memory.available
    found = f"{in_gib(available)} available of {in_gib(memory.total)}"
    if limits.memory_bytes is not None and limits.memory_bytes < memory.total:
        free = limits.memory_free_bytes or 0
        available = min(available, free)
        found += (
            f"; the cgroup allows {in_gib(limits.memory_bytes)}, {in_gib(free)} left"
        )
    if available >= _SCARCE_BYTES:
        return Check("memory", "ok", found)
    state: CheckState = "warning" if available >= _TOO_LITTLE_BYTES else "problem"
    hint = "end other programs or raise the container's limit; sluice run --workers 1"
    return Check("memory", state, found, hint)
