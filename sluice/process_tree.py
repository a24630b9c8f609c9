"""Ties child processes to their parent, so that none outlives its run; how they ended.

Linux can kill a child with its parent. Elsewhere only process groups are used.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15


def _control(option: int, *arguments: object) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, *arguments)


def die_with(parent: int) -> None:
    """Has the kernel kill this process when ``parent`` ends, or has ended already."""
    _control(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if sys.platform == "linux" and os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def name_process(name: str) -> None:
    """Sets the process name in ``ps -o comm`` and ``top``, at most 15 bytes."""
    _control(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def kill_group(leader: int) -> None:
    """Kills every process of a group, if there is any."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def describe_end(status: int | None) -> str:
    """Returns how a process ended, as the predicate of a sentence.

    The status is as in ``subprocess``: negative after a signal; None if unknown.
    """
    if status is None:
        return "is gone"
    if status == -signal.SIGKILL:
        why = "by hand or since the machine was out of memory"
        return f"was killed by signal 9, {why}"
    if status < 0:
        signal_name = (signal.strsignal(-status) or "no description").lower()
        with suppress(ValueError):  # the real-time signals have no names
            signal_name = f"{signal.Signals(-status).name}, {signal_name}"
        return f"was killed by signal {-status} ({signal_name})"
    return f"ended its process with status {status}"
