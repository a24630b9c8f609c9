"""Creates jobs of ``tiny_jobs`` and waits for the messages of a process pool."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runners.local.processes.job import Job
from runners.local.processes.process_pool import ProcessPool

DEADLINE_S = 120.0


def make_job(root: Path, function: str, **arguments: Any) -> Job:
    log, environment = str(root / "job.log"), {"OF_THE_JOB": "!"}
    return Job(f"tiny_jobs:{function}", arguments, log, environment)


def wait_for(found: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if result := found():
            return result
        time.sleep(0.02)
    pytest.fail(f"waited in vain for {what}")


def messages_until(process_pool: ProcessPool, key: str) -> list[dict[str, Any]]:
    """Returns all messages up to the first that has a key."""
    found: list[dict[str, Any]] = []

    def told() -> bool:
        found.extend(process_pool.messages(0.1))
        return any(key in message for message in found)

    wait_for(told, f"the message {key!r}")
    return found


def read_pids(path: Path) -> list[int]:
    text = wait_for(lambda: path.exists() and path.read_text(), f"{path}")
    return [int(pid) for pid in text.split()]
