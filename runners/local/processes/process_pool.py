"""Process pool: starts the zygote, sends it jobs, and stops it."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from runners.local.processes.forked_process import ForkedProcess
from runners.local.processes.job import Job, redirect_output
from runners.local.processes.zygote import (
    FORK,
    SPAWN,
    changed_ns,
    copy_output,
    python_command,
)
from runners.local.processes.zygote import main as zygote_main
from sluice.compat import child_environment, tensorflow_has_started
from sluice.errors import NodeError, UsageError
from sluice.process_tree import describe_end, kill_group

START_METHOD = "SLUICE_START_METHOD"
POLL_S = 0.2
_GRACE_S = 10.0
# Imported once by the zygote, since every node needs them.
PRELOADED = (
    "tfx.components",
    "tfx.dsl.compiler.compiler",
    "tfx.orchestration.local.runner_utils",
    "tfx.orchestration.portable.launcher",
    "tfx.orchestration.portable.partial_run_utils",
    "runners.local.node_job",
    "runners.local.prepare_job",
)


class ProcessPool:
    """Starts jobs in forks of a zygote; a context manager.

    ``start`` may be called at once; jobs begin when the zygote has finished its imports
    (10 to 20 seconds). Leaving the context ends all processes and deletes their
    temporary files.
    """

    def __init__(
        self,
        log: Path | None = None,
        *,
        cwd: Path,
        modules: Sequence[str] | None = None,
        from_here: bool = False,
    ) -> None:
        """Starts the zygote and returns at once.

        Args:
          log: the zygote's output; None until ``belong_to``.
          cwd: the working directory of all jobs; Python looks there for modules.
          modules: imported by the zygote; None for the modules of our own graph.
          from_here: whether to fork this process, which has imported TFX already, or if
            it cannot be forked, to start a zygote with its environment and Keras.

        Raises:
          UsageError: the environment variable SLUICE_START_METHOD is neither ``fork``
            nor ``spawn``.
        """
        if modules is None:
            # Imported here: in a script the name may be another package.
            from pipeline.graph.node_registry import modules_to_preload

            modules = [*PRELOADED, *modules_to_preload()]
        self._started: dict[str, int] = {}
        self._sources: dict[str, int] = {}
        self._environment = dict(os.environ)
        self._pending = b""
        self.ready = False
        self._socket, theirs = socket.socketpair()
        self._log: Path | None = None
        method = start_method()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 (close)
        self._temporary = tempfile.mkdtemp(prefix="sluice-")
        arguments = [
            str(os.getpid()),
            str(theirs.fileno()),
            method,
            self._temporary,
            *modules,
        ]
        self._process: subprocess.Popen | ForkedProcess
        with theirs:
            if from_here and can_fork():
                self._process = self._fork(arguments, cwd)
            else:
                chosen = {} if from_here else child_environment()
                self._process = self._spawn(arguments, cwd, theirs, chosen)
        if log is not None:
            self.belong_to(log)

    def _fork(self, arguments: list[str], cwd: Path) -> ForkedProcess:
        def zygote() -> None:
            self._socket.close()
            redirect_output(self._output.fileno())
            os.chdir(cwd)
            zygote_main(arguments)

        return ForkedProcess(zygote)

    def _spawn(
        self,
        arguments: list[str],
        cwd: Path,
        theirs: socket.socket,
        environment: Mapping[str, str],
    ) -> subprocess.Popen:
        return subprocess.Popen(
            python_command("runners.local.processes.zygote", *arguments),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            cwd=cwd,
            env={**os.environ, **environment},
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Of the zygote."""
        return self._process.pid

    @property
    def is_current(self) -> bool:
        """Whether the zygote runs with the code and environment of a new one."""
        return (
            self._process.poll() is None
            and self._environment == dict(os.environ)
            and all(changed_ns(path) == at for path, at in self._sources.items())
        )

    def pid_of(self, name: str) -> int | None:
        """Returns the process of a job that has started and not ended."""
        return self._started.get(name)

    def belong_to(self, log: Path, keep_open: Iterable[int] = ()) -> None:
        """Assigns this process pool to a run, until ``release``.

        Args:
          log: the zygote's output, past and future.
          keep_open: descriptors that every process of the run holds, such as that of
            a lock that must be held until the last process has ended.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log
        with open(log, "ab") as file:
            lent = [file.fileno(), *keep_open]
            request = json.dumps({"belong": len(lent)}).encode() + b"\n"
            try:
                socket.send_fds(self._socket, [request], lent)
            except (BrokenPipeError, ConnectionResetError) as error:
                raise self._lost() from error

    def release(self) -> None:
        """Ends ``belong_to``, so that the pool can be used for another run.

        Closes the descriptors and deletes the temporary files of the run's jobs.

        Raises:
          NodeError: the zygote has ended unexpectedly, or does not answer.
        """
        self._send({"release": True})
        deadline = time.monotonic() + _GRACE_S
        while (left := deadline - time.monotonic()) > 0:
            if any("released" in message for message in self.messages(left)):
                return
        raise NodeError(
            f"the process that runs the nodes does not answer (pid {self.pid})",
            where=self._log,
            hint="run it again; finished nodes are kept",
        )

    def start(self, name: str, job: Job) -> None:
        """Starts a job in its own process; its ``name`` may be reused after its end."""
        umask = os.umask(0o077)
        os.umask(umask)
        self._send({"start": name, "job": job.to_dict(), "umask": umask})

    def signal(self, name: str, number: int) -> None:
        """Signals a running job: SIGKILL its whole group, others its process."""
        self._send({"signal": name, "number": number})

    def messages(self, timeout_s: float) -> list[dict[str, Any]]:
        """Returns the zygote's new messages, after at most ``timeout_s``.

        Raises:
          NodeError: the zygote has ended unexpectedly.
        """
        ready, _, _ = select.select([self._socket], [], [], timeout_s)
        if not ready:
            return []
        try:
            data = self._socket.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            raise self._lost()
        *lines, self._pending = (self._pending + data).split(b"\n")
        messages = [json.loads(line) for line in lines]
        for message in messages:
            if "ready" in message:
                self.ready, self._sources = True, message["sources"]
            elif "started" in message:
                self._started[message["started"]] = message["pid"]
            elif "ended" in message:
                self._started.pop(message["ended"], None)
        return messages

    def run(
        self,
        name: str,
        job: Job,
        *,
        on_tick: Callable[[], None] = lambda: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> dict[str, Any] | None:
        """Runs one job to its end.

        Args:
          name: of the job.
          job: the job.
          on_tick: called several times per second.
          stopped: returns whether to kill the job.

        Returns:
          The message ``ended``, None if it was stopped.

        Raises:
          NodeError: the zygote has ended unexpectedly.
        """
        self.start(name, job)
        while not stopped():
            for message in self.messages(POLL_S):
                if message.get("ended") == name:
                    return message
            on_tick()
        self.signal(name, signal.SIGKILL)
        return None

    def close(self) -> None:
        """Ends the zygote and everything that it has started."""
        self._socket.close()
        if not self.ready:
            self._process.kill()
        deadline = time.monotonic() + _GRACE_S
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        self._process.kill()
        self._process.wait()
        # If the zygote was killed, its children are left.
        for pid in self._started.values():
            kill_group(pid)
        shutil.rmtree(self._temporary, ignore_errors=True)
        self._output.close()

    def _send(self, request: dict[str, Any]) -> None:
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError) as error:
            raise self._lost() from error

    def _lost(self) -> NodeError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_GRACE_S)
        if self._log and not self.ready:
            # It ended before it copied its output.
            with open(self._log, "ab") as file:
                copy_output(self._output.fileno(), file.fileno())
        return NodeError(
            f"the process that runs the nodes {describe_end(self._process.returncode)}",
            where=self._log,
            hint="run it again; finished nodes are kept",
        )


def start_method() -> str:
    """Returns ``fork`` or ``spawn``: SLUICE_START_METHOD, else what is safe here.

    Raises:
      UsageError: the variable holds something else.
    """
    default = FORK if sys.platform == "linux" else SPAWN
    method = os.environ.get(START_METHOD) or default
    if method not in (FORK, SPAWN):
        raise UsageError(
            f"{START_METHOD} is not a valid start method",
            expected=f"{FORK} or {SPAWN}",
            actual=method,
        )
    return method


def can_fork() -> bool:
    """Whether this process has imported TFX, and a fork of it can run nodes.

    Threads do not survive a fork, and neither do TensorFlow's devices.
    """
    if start_method() != FORK or "tfx.orchestration" not in sys.modules:
        return False
    return threading.active_count() == 1 and not tensorflow_has_started()
