"""A forked child with the interface of ``subprocess.Popen``."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import traceback
from collections.abc import Callable
from contextlib import suppress

_POLL_S = 0.01


class ForkedProcess:
    """Runs a function in a fork of this process, in its own session.

    Attributes:
      pid: of the child.
      returncode: as in ``subprocess``; None while it runs.
    """

    def __init__(self, function: Callable[[], None]) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.setsid()
                function()
                status = 0
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1
            except BaseException:
                os.write(2, traceback.format_exc().encode())
            finally:
                # The parent's exit handlers are not the child's.
                os._exit(status)

    def poll(self) -> int | None:
        """Returns the exit status if the child has ended, else None."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the child and returns its exit status.

        Raises:
          subprocess.TimeoutExpired: it has not ended in ``timeout`` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("fork", timeout or 0.0)
            time.sleep(_POLL_S)
        return status

    def kill(self) -> None:
        """Kills the child unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
