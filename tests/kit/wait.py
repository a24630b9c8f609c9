"""Waiting for another process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import psutil
import pytest

DEADLINE_S = 240.0
Found = TypeVar("Found")


def wait_for(
    condition: Callable[[], Found], what: str = "it", timeout_s: float = DEADLINE_S
) -> Found:
    """Waits until something is true and returns it."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    pytest.fail(f"waited in vain for {what}")


def is_gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
