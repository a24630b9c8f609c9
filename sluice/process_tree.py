"""Ties child processes to their parent, so that none outlives its run; how they ended.

Linux can kill a child with its parent and give a process its descendants' orphans.
Elsewhere only process groups are used.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36


def _control(option: int, *arguments: object) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, *arguments)


def die_with(parent: int) -> None:
    """Has the kernel kill this process when ``parent`` ends, or has ended already."""
    _control(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if sys.platform == "linux" and os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def outlive_parent() -> None:
    """Reverses ``die_with``."""
    _control(_PR_SET_PDEATHSIG, 0)


def name_process(name: str) -> None:
    """Sets the process name in ``ps -o comm`` and ``top``, at most 15 bytes."""
    _control(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def adopt_orphans() -> None:
    """Makes this process the parent of descendants whose own parent ends."""
    _control(_PR_SET_CHILD_SUBREAPER, 1)


def kill_group(leader: int) -> None:
    """Kills every process of a group, if there is any."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def kill_descendants() -> None:
    """Kills and reaps every descendant of this process that can be found."""
    while pids := descendants(os.getpid()):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)


def descendants(root: int) -> list[int]:
    """Returns the pids of the children of a process, and theirs, and so on.

    Zombies count until they are reaped. Empty where ``root`` is gone.
    """
    import psutil  # Not at the top: the first process of a run starts before it.

    try:
        children = psutil.Process(root).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [child.pid for child in children]


def describe_end(status: int | None, peak_memory_bytes: int | None = None) -> str:
    """Returns how a process ended, as the predicate of a sentence.

    The status is as in ``subprocess``: negative after a signal; None if unknown.
    """
    peak = f": peak {peak_memory_bytes / 1e9:.1f} GB" if peak_memory_bytes else ""
    if status is None:
        return "is gone"
    if status == -signal.SIGKILL:
        from sluice.machine_resources import total_memory_bytes

        likely = 2 * (peak_memory_bytes or 0) > total_memory_bytes()
        why = "probably" if likely else "by hand or since the machine was"
        return f"was killed by signal 9, {why} out of memory{peak}"
    if status < 0:
        what = (signal.strsignal(-status) or "no description").lower()
        with suppress(ValueError):  # the real-time signals have no names
            what = f"{signal.Signals(-status).name}, {what}"
        return f"was killed by signal {-status} ({what}){peak}"
    return f"ended its process with status {status}{peak}"
