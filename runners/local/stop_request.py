"""Detects requests to stop a run: Ctrl-C, SIGTERM, a closed terminal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from sluice.errors import ExitCode

_CODES = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGHUP: ExitCode.TERMINATED,
}


class StopRequest:
    """The signals received so far.

    Attributes:
      signal: the first signal, None before it.
      urgent: whether there was a second one.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self.urgent = False

    @property
    def exit_code(self) -> ExitCode | None:
        """INTERRUPTED or TERMINATED after a signal, else None."""
        return None if self.signal is None else _CODES[self.signal]

    @property
    def reason(self) -> str:
        """The reason of an interrupted node; empty before a signal."""
        return f"interrupted by {self.signal.name}" if self.signal else ""

    @contextmanager
    def listen(self) -> Iterator[None]:
        """Handles signals inside the block; without effect outside the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = {number: signal.signal(number, self._note) for number in _CODES}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = signal.Signals(number)
        else:
            self.urgent = True
