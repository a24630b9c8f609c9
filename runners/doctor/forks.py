"""Whether nodes can be forked from a process that has imported TFX once."""

from __future__ import annotations

import os
import sys

from runners.doctor.check import Check


def check_forks() -> Check:
    """Forks once. Without forks each node imports TFX for itself, which takes 10 s."""
    version = ".".join(map(str, sys.version_info[:2]))
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
    if sys.version_info >= (3, 12):
        found = f"Python {version} warns of forks: each node imports TFX itself"
        return Check(
            "forks", "warning", found, "Python 3.10 with TFX 1.16 starts faster"
        )
    return Check("forks", "ok", "nodes start from a process that has imported TFX")
