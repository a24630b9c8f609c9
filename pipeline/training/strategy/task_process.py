"""One process of a training on this machine: a task of a cluster.

It is forked, so that its imports are there at once. It ends with its parent. When the
training has returned, it waits to be ended: other processes may still need its server.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import RawValue
from typing import Any, Literal

import psutil

from sluice import interrupt
from sluice.errors import NodeError
from sluice.process_tree import describe_end, die_with, name_process
from sluice.progress import PROGRESS_FILE

# Where TensorFlow finds its cluster and its place in it.
TF_CONFIG = "TF_CONFIG"
_NAMES = {"chief": "coordinator", "worker": "worker", "ps": "parameter server"}
# Errors of TensorFlow where another process is gone. By name, so that the supervisor
# need not import it.
_LOST = ("AbortedError", "CancelledError", "UnavailableError")
_PORT_IS_TAKEN = "Could not start gRPC server"


@dataclass(frozen=True)
class Task:
    """Job and index of a process in the cluster, as in ``TF_CONFIG``."""

    type: Literal["chief", "worker", "ps"]
    index: int

    @property
    def name(self) -> str:
        """Returns what logs and messages call it, such as ``worker 1``."""
        number = "" if self.type == "chief" else f" {self.index}"
        return f"{_NAMES[self.type]}{number}"


class _Pulse(ctypes.Structure):
    """Memory that a process shares with its supervisor.

    ``at`` is when it last progressed, in seconds of the monotonic clock, which all
    processes of a machine share; ``fitting``, whether it stops at a checkpoint.
    """

    _fields_ = (("at", ctypes.c_double), ("fitting", ctypes.c_bool))


_pulse: Any = None


def is_supervised() -> bool:
    """Returns whether this process was started by the supervisor of a training."""
    return _pulse is not None


def beat() -> None:
    """Tells the supervisor of this process, if it has one, that it progresses."""
    if _pulse is not None:
        _pulse.at = time.monotonic()


def set_fitting(fitting: bool) -> None:
    """Tells the supervisor whether this process polls for requests to stop."""
    beat()
    if _pulse is not None:
        _pulse.fitting = fitting


class TracebackInTask(Exception):
    """Cause of an error that was raised in another process: its traceback there."""


class TaskProcess:
    """A running task.

    Attributes:
      task: its place in the cluster.
      state: ``running``; ``done`` or ``stopped`` when the training has returned or was
        stopped; ``failed`` when it has raised ``error``; ``lost`` when the process, or
        one that it needs, is gone for the reason ``end``.
      end: how it was lost, as the predicate of a sentence.
      error: what the training raised.
    """

    def __init__(
        self, task: Task, train: Callable[[], None], tf_config: str, folder: str
    ) -> None:
        """Starts the process."""
        self.task = task
        self.state = "running"
        self.end = ""
        self.error: BaseException | None = None
        self._pulse = RawValue(_Pulse, time.monotonic(), False)
        self._line = b""
        context = multiprocessing.get_context("fork")
        self._report, report = context.Pipe(duplex=False)
        self.output, output = os.pipe()
        arguments = (task, train, self._pulse, report, output, os.getpid())
        environment = {TF_CONFIG: tf_config, "TMPDIR": folder}
        sys.stdout.flush()
        sys.stderr.flush()
        self._process = context.Process(target=_work, args=(*arguments, environment))
        self._process.start()
        report.close()
        os.close(output)
        os.set_blocking(self.output, False)

    @property
    def waitables(self) -> list[Any]:
        """Returns what becomes ready when there is something to ``poll``."""
        if self.state == "running":
            return [self.output, self._report, self._process.sentinel]
        return [self.output]

    @property
    def fitting(self) -> bool:
        """Whether it polls for requests to stop."""
        return bool(self._pulse.fitting)

    def poll(self) -> None:
        """Copies new output to this process' standard error and updates the state."""
        self._copy_output()
        if self.state != "running":
            return
        ended = not self._process.is_alive()
        with suppress(EOFError, OSError):
            if self._report.poll():
                self.state, self.error, text = self._report.recv()
                if self.error is not None:
                    self.error.__cause__ = TracebackInTask(text)
                if _is_loss(self.error):
                    # The reason comes last, after the place in the graph.
                    text = " ".join(str(self.error).split())[-300:]
                    name = type(self.error).__name__
                    self.state, self.end = "lost", f"raised {name}: {text}"
                return
        if ended:
            self._process.join()
            self.state = "lost"
            self.end = describe_end(self._process.exitcode)

    def kill_if_stalled(self, after_s: float) -> None:
        """Kills the process if it runs and has not progressed for so many seconds."""
        stalled_s = time.monotonic() - self._pulse.at
        if self.state != "running" or stalled_s < after_s:
            return
        status = "gone"
        with suppress(psutil.Error):
            status = psutil.Process(self._process.pid).status()
        self.state = "lost"
        self.end = f"made no progress for {stalled_s:.0f} s ({status}) and was killed"
        self._process.kill()

    def stop(self) -> None:
        """Requests the training to stop at a checkpoint."""
        if self.state == "running":
            self._process.terminate()

    def kill(self) -> None:
        """Kills the process; ``close`` must follow."""
        self._process.kill()

    def close(self) -> None:
        """Kills the process, waits for its end, and copies the rest of its output."""
        self._process.kill()
        self._process.join()
        self._copy_output()
        if self._line:
            self._write(self._line)
        os.close(self.output)
        self._report.close()

    def _copy_output(self) -> None:
        with suppress(BlockingIOError):
            while data := os.read(self.output, 1 << 16):
                *lines, self._line = (self._line + data).split(b"\n")
                for line in lines:
                    self._write(line)

    def _write(self, line: bytes) -> None:
        os.write(2, f"[{self.task.name}] ".encode() + line + b"\n")


def _work(
    task: Task,
    train: Callable[[], None],
    pulse: Any,
    report: Connection,
    output: int,
    parent: int,
    environment: dict[str, str],
) -> None:
    global _pulse
    die_with(parent)
    interrupt.listen()
    name_process(f"sluice:{task.name}")
    # A collection would touch, and so copy, what this process shares with its parent.
    gc.freeze()
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.environ.update(environment)
    tempfile.tempdir = environment["TMPDIR"]
    if task.index > 0 or task.type == "ps":
        os.environ.pop(PROGRESS_FILE, None)
    _pulse = pulse
    error: BaseException | None = None
    text = ""
    try:
        train()
        state = "done"
    except interrupt.Interrupted:
        state = "stopped"
    except BaseException as raised:
        # A library may have converted the interrupt into its own exception.
        state = "stopped" if interrupt.requested() else "failed"
        error, text = _portable(raised), traceback.format_exc()
        print(text, file=sys.stderr)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stdout.flush()
    sys.stderr.flush()
    report.send((state, error, text))
    while True:
        signal.pause()


def _is_loss(error: BaseException | None) -> bool:
    """Whether an error is the consequence of a lost process or of a taken port."""
    return type(error).__name__ in _LOST or _PORT_IS_TAKEN in str(error)


def _portable(error: BaseException) -> BaseException:
    """Returns the error, or one with its text if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        text = str(error).partition("\n")[0]
        return NodeError(f"the training failed: {type(error).__name__}: {text}")
    return error
