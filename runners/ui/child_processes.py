"""The commands that the server has started, and their output.

A command such as ``sluice resume`` goes on when the server ends: the run's record shows
what becomes of it. TensorBoard ends with the server.
"""

from __future__ import annotations

import itertools
import os
import shlex
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sluice.clock import utc_now
from sluice.process_tree import kill_group

_TAIL_BYTES = 100_000
_TERMINATE_S = 2.0


@dataclass(frozen=True)
class Command:
    """A command to start.

    Attributes:
      arguments: the program and its arguments.
      words: the command as one would type it.
      ends_with_server: whether it is terminated when the server stops.
    """

    arguments: list[str]
    words: list[str]
    ends_with_server: bool = False

    @property
    def text(self) -> str:
        """The command line to type."""
        return shlex.join(self.words)


@dataclass(frozen=True)
class Child:
    """A started command.

    Attributes:
      number: its place among those of this server, from 1.
      title: what it does.
      pipeline: for which pipeline.
      url: of the page that it was started from.
      started_at: UTC, ISO 8601.
    """

    number: int
    command: Command
    title: str
    pipeline: str
    url: str
    started_at: str
    process: subprocess.Popen[bytes]
    output_file: Path

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self.process.poll()

    def output(self) -> str:
        """Returns the end of what it has printed."""
        with open(self.output_file, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace")


class ChildProcesses:
    """The children of the server.

    ``start`` must be called in the main thread: the kernel ends a tied child together
    with the thread that has started it.
    """

    def __init__(self) -> None:
        self._children: dict[int, Child] = {}
        self._numbers = itertools.count(1)
        self._folder = tempfile.TemporaryDirectory(prefix="sluice-ui-")

    def close(self) -> None:
        """Ends the children that are tied to the server."""
        tied = [
            child.process
            for child in self._children.values()
            if child.command.ends_with_server and child.exit_code is None
        ]
        for process in tied:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + _TERMINATE_S
        for process in tied:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            kill_group(process.pid)
            process.wait()
        self._folder.cleanup()

    def all(self) -> list[Child]:
        """Returns all children, the newest first."""
        return list(self._children.values())[::-1]

    def get(self, number: int) -> Child | None:
        """Returns a child, or None."""
        return self._children.get(number)

    def start(self, command: Command, *, title: str, pipeline: str, url: str) -> Child:
        """Starts a command in a session of its own, without input.

        One that ends with the server is started once.
        """
        if command.ends_with_server:
            for child in self._children.values():
                if child.command == command and child.exit_code is None:
                    return child
        number = next(self._numbers)
        output_file = Path(self._folder.name) / f"{number}.log"
        with open(output_file, "wb") as output:
            process = subprocess.Popen(
                command.arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        child = Child(
            number, command, title, pipeline, url, utc_now(), process, output_file
        )
        self._children[number] = child
        return child
