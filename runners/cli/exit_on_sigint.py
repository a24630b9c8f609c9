"""Exits at once on Ctrl-C while a command is being imported."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from sluice.errors import ExitCode


@contextmanager
def exit_on_sigint() -> Iterator[None]:
    """Ends the process at once on Ctrl-C, while there is nothing to clean up.

    A ``KeyboardInterrupt`` raised during an import is lost in some callbacks of the
    interpreter, and pydantic turns it into a panic.
    """
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(ExitCode.INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
