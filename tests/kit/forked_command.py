"""Runs ``sluice`` in a fork of the tests' server, which has imported TFX.

The runner is a separate process, as when a user starts it, and forks itself for its
nodes, as a script that has imported TFX does. Only the import of TFX is saved: 10 to 20
seconds per command.
"""

from __future__ import annotations

import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from runners.local import processes
from tests.kit.wait import DEADLINE_S


class ForkedCommand:
    """A ``sluice`` in a fork of the server; used as ``subprocess.Popen`` is.

    Attributes:
      pid: of the runner.
    """

    def __init__(
        self,
        folder: Path,
        arguments: tuple[str, ...],
        cwd: Path,
        environment: dict[str, str],
    ) -> None:
        folder.mkdir(parents=True)
        self._files = folder / "out", folder / "err"
        processes.start_server(components=True)
        self._process = multiprocessing.get_context("forkserver").Process(
            target=_run,
            args=(arguments, cwd, *self._files, {**os.environ, **environment}),
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit status once it has ended."""
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float = DEADLINE_S) -> int:
        """Waits for its end.

        Raises:
          subprocess.TimeoutExpired: it has not ended in ``timeout`` seconds.
        """
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("sluice", timeout)
        return self.returncode

    def communicate(self, timeout: float = DEADLINE_S) -> tuple[str, str]:
        """Waits for its end and returns what it has printed."""
        self.wait(timeout)
        return self.printed()

    def printed(self) -> tuple[str, str]:
        """Returns what it has printed so far."""
        out, err = (path.read_text() if path.exists() else "" for path in self._files)
        return out, err

    def completed(self) -> subprocess.CompletedProcess[str]:
        """Waits for its end and returns all of it, as ``subprocess.run`` does."""
        out, err = self.communicate()
        assert self.returncode is not None
        return subprocess.CompletedProcess("sluice", self.returncode, out, err)

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Kills it unless it has ended."""
        if self.poll() is None:
            self.send_signal(signal.SIGKILL)


def call_as_node(
    function: str, environment: dict[str, str], log: Path, *arguments: Any
) -> None:
    """Calls ``module:name`` in this process, which is new, as a node's is called."""
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    with open(log, "ab", buffering=0) as file:
        processes.redirect_output(file.fileno())
    pkgutil.resolve_name(function)(*arguments)


def _run(
    arguments: tuple[str, ...],
    cwd: Path,
    out: Path,
    err: Path,
    environment: dict[str, str],
) -> None:
    with open(out, "ab", buffering=0) as file:
        processes.redirect_output(file.fileno())
    with open(err, "ab", buffering=0) as file:
        os.dup2(file.fileno(), 2)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["sluice", *arguments]
    code = 1
    try:
        from runners.cli import main as command_line

        assert processes.can_fork()
        command_line.main(list(arguments))
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
