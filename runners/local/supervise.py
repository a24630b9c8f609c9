"""Starts the child process, follows its events and its training, and ends it."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from sluice import progress
from sluice.errors import ExitCode
from sluice.workspace import Workspace

POLL_S = 0.2
GRACE_S = 10.0
_SIGNALS = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGHUP: ExitCode.TERMINATED,
}


class Ending:
    """How the child process ended: by itself, by a signal of its own, or by ours."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.returncode: int | None = None

    @property
    def exit_code(self) -> ExitCode | None:
        """INTERRUPTED or TERMINATED if somebody asked for the end, else None."""
        return None if self.signal is None else _SIGNALS[signal.Signals(self.signal)]

    @property
    def reason(self) -> str:
        """Why a node that was running has no end."""
        if self.signal is not None:
            return f"interrupted by {signal.Signals(self.signal).name}"
        code = self.returncode or 0
        if code == -signal.SIGKILL:
            return "was killed by signal 9, probably out of memory"
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended its process with status {code}"


def supervise(
    project_root: Path,
    run_dir: Path,
    workspace: Workspace,
    on_event: Callable[[dict[str, Any]], None],
    on_progress: Callable[[str, dict[str, Any]], None],
    on_tick: Callable[[], None],
) -> Ending:
    """Runs the pipeline in a child process to its end.

    Args:
      project_root: the child's working directory, wherever the command was given:
        Python looks there for modules first.
      run_dir: holds ``config.json``; logs and progress go there.
      workspace: of the pipeline.
      on_event: called with each event of the runner.
      on_progress: called with the node and each line of its progress.
      on_tick: called a few times per second.

    Returns:
      How the process ended.
    """
    ending = Ending()
    read_fd, write_fd = os.pipe()
    log = run_dir / "logs" / "start.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as log_file:
        child = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "runners.local.child_process",
                str(run_dir),
                str(write_fd),
                str(workspace.root),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=log_file,
            cwd=project_root,
            pass_fds=[write_fd],
            start_new_session=True,
        )
    os.close(write_fd)
    followed = _Followed(run_dir, on_progress)
    try:
        with _signals_end(child, ending), open(read_fd, "rb", buffering=0) as events:
            for line in _lines(child, events, on_tick, followed):
                event = json.loads(line)
                followed.note(event)
                on_event(event)
                if event["event"] == "finished":
                    break
            with suppress(subprocess.TimeoutExpired):
                ending.returncode = child.wait(timeout=GRACE_S)
    finally:
        _end(child)
    return ending


class _Followed:
    """Reads the progress file of the node that is running."""

    def __init__(
        self, run_dir: Path, on_progress: Callable[[str, dict[str, Any]], None]
    ) -> None:
        self._run_dir = run_dir
        self._on_progress = on_progress
        self._node: str | None = None
        self._offset = 0

    def note(self, event: dict[str, Any]) -> None:
        if event["event"] == "node_started":
            self._node, self._offset = event["node"], 0
        elif event["event"] == "node_finished":
            self.poll()
            self._node = None

    def poll(self) -> None:
        if self._node is None:
            return
        path = self._run_dir / "progress" / f"{self._node}.jsonl"
        lines, self._offset = progress.read(path, self._offset)
        for line in lines:
            self._on_progress(self._node, line)


def _lines(
    child: subprocess.Popen,
    events: Any,
    on_tick: Callable[[], None],
    followed: _Followed,
) -> Iterator[bytes]:
    """Yields whole lines until the pipe closes or the child is gone.

    Processes that user code has forked may hold the pipe open after the child's end.
    """
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(events, selectors.EVENT_READ)
        while True:
            gone = child.poll() is not None
            if selector.select(0 if gone else POLL_S):
                data = os.read(events.fileno(), 1 << 16)
                if not data:
                    return
                *whole, pending = (pending + data).split(b"\n")
                yield from whole
            elif gone:
                return
            followed.poll()
            on_tick()


@contextmanager
def _signals_end(child: subprocess.Popen, ending: Ending) -> Iterator[None]:
    """While in it, SIGINT and SIGTERM end the child; a second one kills it."""

    def handle(number: int, frame: FrameType | None) -> None:
        if ending.signal is None:
            ending.signal = number
            _signal_group(child, signal.SIGTERM)
        else:
            _signal_group(child, signal.SIGKILL)

    previous = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _end(child: subprocess.Popen) -> None:
    """Leaves no process behind, whatever happened."""
    deadline = time.monotonic() + GRACE_S
    _signal_group(child, signal.SIGTERM)
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    _signal_group(child, signal.SIGKILL)
    child.wait()


def _signal_group(child: subprocess.Popen, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, number)
