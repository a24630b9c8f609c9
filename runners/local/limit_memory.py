"""Kills nodes that exceed their memory limit.

The processes of a node are polled a few times per second. The kernel's limits
(``RLIMIT_AS``, ``RLIMIT_DATA``) count memory that TensorFlow only reserves, and each
process separately; control groups need privileges. An allocation faster than the
polling interval can exceed the limit.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress

import psutil

from runners.engine import MemoryLimits
from sluice.errors import NodeError
from sluice.process_tree import descendants, kill_group

_MB = 1_000_000


class LimitMemory:
    """Kills the processes of a node that is over its limit."""

    def __init__(
        self, limits: MemoryLimits, pid_of: Callable[[str], int | None]
    ) -> None:
        self._limits = limits
        self._pid_of = pid_of
        self._exceeded: dict[str, NodeError] = {}

    def poll(self, running: Iterable[str]) -> None:
        """Looks at the nodes that are running."""
        for node_id in running:
            limit, pid = self._limits.of(node_id), self._pid_of(node_id)
            if limit is not None and pid is not None:
                self._look_at(node_id, pid, *limit)

    def take(self, node_id: str) -> NodeError | None:
        """Returns, once, why a node was killed; None if it was not."""
        return self._exceeded.pop(node_id, None)

    def _look_at(self, node_id: str, pid: int, limit: int, setting: str) -> None:
        pids = [pid, *descendants(pid)]
        # The sum of resident sizes is cheap and an upper bound: it counts memory that
        # forks share once per process.
        if sum(map(_resident, pids)) <= limit or (used := _used(pids)) <= limit:
            return
        hint = f"raise {setting}, or have the node use less"
        if self._limits.in_config:
            hint += ", such as by a smaller train.batch_size"
            hint += "; then run again: finished nodes are cached"
        else:
            hint += "; then run again"
        processes = "1 process" if len(pids) == 1 else f"{len(pids)} processes"
        self._exceeded[node_id] = NodeError(
            f"{node_id} was killed: it exceeded its memory limit",
            expected=f"at most {limit // _MB:,} MB ({setting})",
            actual=f"{used // _MB:,} MB in {processes}",
            hint=hint,
        )
        kill_group(pid)
        for process in pids:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def _used(pids: Iterable[int]) -> int:
    """Returns the memory of processes in bytes, shared pages divided among them."""
    return sum(_proportional(pid) or _resident(pid) for pid in pids)


def _proportional(pid: int) -> int:
    """Returns a process' proportional set size; 0 if the kernel does not report it."""
    with suppress(psutil.Error):
        return getattr(psutil.Process(pid).memory_full_info(), "pss", 0)
    return 0


def _resident(pid: int) -> int:
    with suppress(psutil.Error):
        return psutil.Process(pid).memory_info().rss
    return 0
