"""Exits at once on Ctrl-C while a command is being imported."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from sluice.errors import ExitCode


@contextmanager
def exit_on_sigint() -> Iterator[None]:
    """Lets Ctrl-C end the process, where there is nothing to clean up yet.

    A ``KeyboardInterrupt`` that is raised inside an import is lost where it hits one
    of the interpreter's callbacks, and pydantic turns it into a panic.
    """
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(ExitCode.INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
