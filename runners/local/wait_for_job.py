"""Waits for one job to end."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

from runners.local.processes.job import Job
from runners.local.processes.process_pool import ProcessPool

POLL_S = 0.2


def wait_for_job(
    process_pool: ProcessPool,
    name: str,
    job: Job,
    *,
    on_tick: Callable[[], None] = lambda: None,
    stopped: Callable[[], bool] = lambda: False,
) -> dict[str, Any] | None:
    """Returns the zygote's message of a job's end, None if it was stopped before it.

    Args:
      process_pool: where the job's process comes from; it runs no other job meanwhile.
      name: of the job.
      job: what it does.
      on_tick: called several times a second.
      stopped: whether to kill the job and return.

    Raises:
      NodeError: the process that starts the jobs has ended by itself.
    """
    process_pool.start(name, job)
    while not stopped():
        for message in process_pool.messages(POLL_S):
            if message.get("ended") == name:
                return message
        on_tick()
    process_pool.signal(name, signal.SIGKILL)
    return None
